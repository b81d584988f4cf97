/** Notifications from the server, handed to whoever keeps something fresh. The shell emits; features subscribe. */
import type { Notification } from './types'

type Handlers = { [Type in Notification['type']]: Set<(n: Extract<Notification, { type: Type }>) => void> }

const handlers: Handlers = { conversation: new Set(), file: new Set(), run: new Set(), model: new Set() }
const syncHandlers = new Set<() => void>()

/** Called for each notification of a type; returns how to stop. */
export function onNotification<T extends Notification['type']>(
  type: T,
  handler: (notification: Extract<Notification, { type: T }>) => void,
): () => void {
  const set = handlers[type] as Set<typeof handler>
  set.add(handler)
  return () => set.delete(handler)
}

/** Called when notifications may have been missed: read again what you hold. */
export function onSync(handler: () => void): () => void {
  syncHandlers.add(handler)
  return () => syncHandlers.delete(handler)
}

export function emitNotification(notification: Notification): void {
  for (const handler of handlers[notification.type]) (handler as (n: Notification) => void)(notification)
}

export function emitSync(): void {
  for (const handler of syncHandlers) handler()
}

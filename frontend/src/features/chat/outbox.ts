/**
 * Messages that were sent here and not yet acknowledged by the server, kept in localStorage. Each carries the client's id
 * from the moment of sending, so that it may be posted again after a lost answer, a restart or a reload without doubling.
 */
import { createStore, newId, onStored, readStored, writeStored } from '@/shared/hooks'
import type { Id, MessageFile } from '@/shared/api'

export interface Refusal {
  code: string
  message: string
  /** When the sender tries again by itself (ms since 1970); null when only a person can decide. */
  retryAt: number | null
  /** A smaller model that has room, when the server offers one. */
  alternative?: string | null
}

export interface OutboxEntry {
  clientId: Id
  kind: 'post' | 'regenerate'
  /** The server's id, or a local one (`new-…`) until the conversation exists there. */
  conversationId: Id
  text: string
  parentId: Id | null
  files: MessageFile[]
  /** For regenerate: the answer to be repeated. */
  answerId: Id | null
  model: string
  createdAt: string
  /** Refusals in a row; the sender stops retrying by itself after a few. */
  refusals: number
  refusal: Refusal | null
}

const KEY = 'outbox'
const LOCAL = 'new-'
const MAX_ENTRIES = 50

export const newLocalId = (): Id => LOCAL + newId()
export const isLocalId = (id: Id): boolean => id.startsWith(LOCAL)

function isEntry(value: unknown): value is OutboxEntry {
  const entry = value as Partial<OutboxEntry> | null
  return (
    typeof entry === 'object' &&
    entry !== null &&
    typeof entry.clientId === 'string' &&
    typeof entry.conversationId === 'string' &&
    typeof entry.text === 'string' &&
    (entry.kind === 'post' || entry.kind === 'regenerate') &&
    Array.isArray(entry.files)
  )
}

function stored(): OutboxEntry[] {
  return (readStored(KEY, (value): value is unknown[] => Array.isArray(value)) ?? []).filter(isEntry)
}

export const outbox = createStore<readonly OutboxEntry[]>(stored())
onStored(KEY, () => outbox.set(stored()))

/** Read, change and write in one go: another tab may have written since. What could not be stored still lives in memory. */
function update(change: (old: readonly OutboxEntry[]) => readonly OutboxEntry[]): void {
  const before = stored()
  const known = new Set(before.map((entry) => entry.clientId))
  const unstored = outbox.get().filter((entry) => volatile.has(entry.clientId) && !known.has(entry.clientId))
  const next = change([...before, ...unstored])
  if (!writeStored(KEY, next)) for (const entry of next) volatile.add(entry.clientId)
  outbox.set(next)
}

const volatile = new Set<Id>()

export function enqueue(entry: Omit<OutboxEntry, 'clientId' | 'createdAt' | 'refusals' | 'refusal'>): OutboxEntry {
  const full: OutboxEntry = { ...entry, clientId: newId(), createdAt: new Date().toISOString(), refusals: 0, refusal: null }
  update((old) => [...old, full].slice(-MAX_ENTRIES))
  return full
}

export function patchEntry(clientId: Id, change: Partial<OutboxEntry>): void {
  update((old) => old.map((entry) => (entry.clientId === clientId ? { ...entry, ...change } : entry)))
}

export function dequeue(clientId: Id): void {
  volatile.delete(clientId)
  update((old) => old.filter((entry) => entry.clientId !== clientId))
}

/** A conversation that was local got its real id: everything that waits for it moves along. */
export function rename(localId: Id, conversationId: Id): void {
  update((old) => old.map((entry) => (entry.conversationId === localId ? { ...entry, conversationId } : entry)))
}

export function clearOutbox(): void {
  volatile.clear()
  update(() => [])
}

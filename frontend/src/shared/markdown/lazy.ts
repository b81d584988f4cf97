/** A module that is fetched once, on first need, and is at hand without waiting from then on. */
import { useSyncExternalStore } from 'react'

export interface Lazy<T> {
  /** The module when it is there; starts loading it otherwise. */
  use: (wanted: boolean) => T | null
}

const subscribeToNothing = () => () => undefined
const nothing = () => null
const RETRY_MS = 5000

export function lazyModule<T>(load: () => Promise<T>): Lazy<T> {
  let loaded: T | null = null
  let state: 'idle' | 'loading' | 'done' = 'idle'
  const listeners = new Set<() => void>()
  const start = () => {
    if (state !== 'idle') return
    state = 'loading'
    load().then(
      (module) => {
        loaded = module
        state = 'done'
        for (const listener of listeners) listener()
      },
      () => {
        // Offline, or an older page after an update: plain text stays, and another try is made while something waits.
        state = 'idle'
        setTimeout(() => listeners.size > 0 && start(), RETRY_MS)
      },
    )
  }
  const subscribe = (listener: () => void) => {
    listeners.add(listener)
    start()
    return () => listeners.delete(listener)
  }
  return { use: (wanted) => useSyncExternalStore(wanted ? subscribe : subscribeToNothing, () => (wanted ? loaded : null), nothing) }
}

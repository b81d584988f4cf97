/**
 * A tiny cache of GET results with subscriptions: enough for lists and details that notifications keep fresh.
 * One entry a key; concurrent readers share one request; `invalidate` refetches only what is on screen.
 */
import { useCallback, useEffect, useSyncExternalStore } from 'react'

export interface Resource<T> {
  data: T | undefined
  error: unknown
  loading: boolean
}

interface Entry {
  snapshot: Resource<unknown>
  fetcher: (() => Promise<unknown>) | null
  inFlight: Promise<void> | null
  stale: boolean
  version: number
  listeners: Set<() => void>
}

const entries = new Map<string, Entry>()
const MAX_IDLE = 200

function entryOf(key: string): Entry {
  let entry = entries.get(key)
  if (!entry) {
    entry = {
      snapshot: { data: undefined, error: null, loading: false },
      fetcher: null,
      inFlight: null,
      stale: true,
      version: 0,
      listeners: new Set(),
    }
    entries.set(key, entry)
    dropIdle()
  }
  return entry
}

/** Forget the oldest entries nobody looks at, so that a long session stays small. */
function dropIdle(): void {
  if (entries.size <= MAX_IDLE) return
  for (const [key, entry] of entries) {
    if (entry.listeners.size === 0 && !entry.inFlight) entries.delete(key)
    if (entries.size <= MAX_IDLE) return
  }
}

function publish(entry: Entry, change: Partial<Resource<unknown>>): void {
  entry.snapshot = { ...entry.snapshot, ...change }
  for (const listener of entry.listeners) listener()
}

function load(entry: Entry): Promise<void> {
  if (entry.inFlight) return entry.inFlight
  if (!entry.fetcher) return Promise.resolve()
  entry.stale = false
  const { version } = entry
  publish(entry, { loading: true })
  const work = entry
    .fetcher()
    .then(
      // A local write during the request is newer than its answer.
      (data) => publish(entry, version === entry.version ? { data, error: null, loading: false } : { loading: false }),
      (error: unknown) => publish(entry, { error, loading: false }),
    )
    .finally(() => {
      entry.inFlight = null
      if (entry.stale && entry.listeners.size > 0) void load(entry)
    })
  entry.inFlight = work
  return work
}

/** Read a key, fetching it when it is missing or stale. `key` null reads nothing. */
export function useResource<T>(key: string | null, fetcher: () => Promise<T>): Resource<T> & { reload: () => void } {
  const name = key ?? ''
  const subscribe = useCallback(
    (listener: () => void) => {
      if (!name) return () => undefined
      const entry = entryOf(name)
      entry.listeners.add(listener)
      return () => entry.listeners.delete(listener)
    },
    [name],
  )
  const snapshot = useSyncExternalStore(subscribe, () => (name ? entryOf(name).snapshot : EMPTY)) as Resource<T>
  useEffect(() => {
    if (!name) return
    const entry = entryOf(name)
    entry.fetcher = fetcher
    if (entry.stale) void load(entry)
    // The fetcher is bound to the key: a new closure alone is no reason to fetch.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [name])
  const reload = useCallback(() => invalidate(name), [name])
  return { ...snapshot, loading: snapshot.loading || (name !== '' && snapshot.data === undefined && !snapshot.error), reload }
}

const EMPTY: Resource<unknown> = { data: undefined, error: null, loading: false }

/** Mark every key that starts with `prefix` stale; those on screen are fetched again. */
export function invalidate(prefix: string): void {
  for (const [key, entry] of entries) {
    if (!key.startsWith(prefix)) continue
    entry.stale = true
    if (entry.listeners.size > 0) void load(entry)
  }
}

/** Change a cached value in place: optimistic edits and notifications. Does nothing when the key was never read. */
export function patchResource<T>(key: string, change: (old: T) => T): void {
  const entry = entries.get(key)
  if (!entry || entry.snapshot.data === undefined) return
  entry.version += 1
  publish(entry, { data: change(entry.snapshot.data as T) })
}

/** For sign-out and tests. */
export function clearResources(): void {
  for (const entry of entries.values()) {
    entry.stale = true
    entry.version += 1
    publish(entry, { data: undefined, error: null, loading: false })
  }
  for (const [key, entry] of entries) if (entry.listeners.size === 0) entries.delete(key)
}

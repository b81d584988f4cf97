/**
 * What this tab knows of the person's files. Fed by answers and notifications; while a file is being read and no news come,
 * it asks. A record is replaced as a whole.
 */
import { useEffect } from 'react'
import { ApiError, onNotification, onSync, request, type FileRecord, type Id, type Page } from '@/shared/api'
import { createStore, useStore } from '@/shared/hooks'

interface Files {
  byId: ReadonlyMap<Id, FileRecord>
  /** Whether the whole list was read since the page was opened. */
  listed: boolean
}

const EMPTY: Files = { byId: new Map(), listed: false }
export const files = createStore<Files>(EMPTY)
/** Files on screen that somebody waits for, with the number of those who do. */
const watched = new Map<Id, number>()
const lastNews = new Map<Id, number>()

const QUIET_MS = 6_000
const LIST_PAGE = 200
const MAX_LIST_PAGES = 10

/**
 * Take a record from a notification, or from an answer that was asked for at `askedAt`: what arrived while an answer was on
 * its way is newer than the answer.
 */
export function putRecord(record: FileRecord, askedAt = Number.POSITIVE_INFINITY): void {
  if ((lastNews.get(record.id) ?? 0) > askedAt) return
  lastNews.set(record.id, Date.now())
  files.set((old) => {
    const byId = new Map(old.byId)
    if (record.state === 'deleted') byId.delete(record.id)
    else byId.set(record.id, record)
    return { ...old, byId }
  })
}

export function dropRecord(id: Id): void {
  files.set((old) => {
    if (!old.byId.has(id)) return old
    const byId = new Map(old.byId)
    byId.delete(id)
    return { ...old, byId }
  })
}

export function clearRecords(): void {
  lastNews.clear()
  files.set(EMPTY)
}

/** Read the whole list. Replaces what is known, so that files deleted elsewhere go away. */
export async function loadFiles(): Promise<void> {
  const askedAt = Date.now()
  const byId = new Map<Id, FileRecord>()
  let cursor: string | null = null
  for (let page = 0; page < MAX_LIST_PAGES; page += 1) {
    const query: string = cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''
    // oxlint-disable-next-line no-await-in-loop -- each page names the next
    const answer: Page<FileRecord> = await request(`/api/files?limit=${LIST_PAGE}${query}`)
    for (const record of answer.results) byId.set(record.id, record)
    cursor = answer.next
    if (!cursor) break
  }
  for (const [id, record] of files.get().byId) if ((lastNews.get(id) ?? 0) > askedAt) byId.set(id, record)
  files.set({ byId, listed: true })
}

export async function refreshFile(id: Id): Promise<void> {
  const askedAt = Date.now()
  try {
    putRecord(await request<FileRecord>(`/api/files/${id}`), askedAt)
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) dropRecord(id)
    // Otherwise the next round or notification will tell.
  }
}

/** The newest record of a file, kept fresh while it is on screen and not finished. */
export function useFileRecord(initial: FileRecord | null): FileRecord | null {
  const id = initial?.id ?? null
  const known = useStore(files, (state) => (id ? state.byId.get(id) : undefined))
  const record = known ?? initial
  const unfinished = record?.state === 'processing'
  useEffect(() => (id && unfinished ? watch(id) : undefined), [id, unfinished])
  return record
}

/** Until the returned function is called, ask for news of this file whenever none have come for a while. */
export function watch(id: Id): () => void {
  watched.set(id, (watched.get(id) ?? 0) + 1)
  startPolling()
  return () => {
    const count = (watched.get(id) ?? 1) - 1
    if (count > 0) watched.set(id, count)
    else watched.delete(id)
    if (watched.size === 0) stopPolling()
  }
}

let timer: ReturnType<typeof setInterval> | undefined

function startPolling(): void {
  timer ??= setInterval(poll, QUIET_MS / 2)
}

function stopPolling(): void {
  clearInterval(timer)
  timer = undefined
}

function poll(): void {
  if (document.visibilityState === 'hidden') return
  const now = Date.now()
  for (const id of watched.keys()) {
    if (now - (lastNews.get(id) ?? 0) < QUIET_MS) continue
    lastNews.set(id, now)
    void refreshFile(id)
  }
}

onNotification('file', ({ file }) => putRecord(file))
onSync(() => {
  for (const id of watched.keys()) void refreshFile(id)
  if (files.get().listed) loadFiles().catch(() => undefined)
})

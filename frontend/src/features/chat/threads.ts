/** The conversations that this tab has read, and what it does to them. Components subscribe; the server's word is final. */
import { ApiError, request, type Id, type Message, type Page } from '@/shared/api'
import { createStore, type Store } from '@/shared/hooks'
import { emptyThread, leafOf, withMessages, type Thread } from './thread'

export interface ThreadState extends Thread {
  status: 'loading' | 'ready' | 'error' | 'missing'
  error: unknown
}

const KEEP = 20
const threads = new Map<Id, Store<ThreadState>>()
const loading = new Map<Id, Promise<void>>()
const fresh: ThreadState = { ...emptyThread, status: 'loading', error: null }

export function threadStore(id: Id): Store<ThreadState> {
  let store = threads.get(id)
  if (!store) {
    store = createStore(fresh)
    for (const old of threads.keys()) {
      if (threads.size < KEEP) break
      threads.delete(old)
    }
  }
  // Last used last, so that the oldest is forgotten first.
  threads.delete(id)
  threads.set(id, store)
  return store
}

/** Null when this tab never opened the conversation. */
export function knownThread(id: Id): ThreadState | null {
  return threads.get(id)?.get() ?? null
}

/** Start a thread that the server does not have messages of yet. */
export function openEmptyThread(id: Id): void {
  threadStore(id).set((old) => (old.status === 'ready' ? old : { ...emptyThread, status: 'ready', error: null }))
}

/** Read all messages and take the server's head. Requests for the same conversation share one answer. */
export function loadThread(id: Id, head?: Id | null | Promise<Id | null>): Promise<void> {
  const running = loading.get(id)
  if (running) return running
  const work = Promise.all([readAll(id), head])
    .then(([messages, headId]) => threadStore(id).set((old) => refreshed(old, messages, headId)))
    .catch((error: unknown) => {
      const missing = error instanceof ApiError && error.status === 404
      threadStore(id).set((old) =>
        old.status === 'ready' && !missing ? old : { ...old, status: missing ? 'missing' : 'error', error },
      )
    })
    .finally(() => loading.delete(id))
  loading.set(id, work)
  return work
}

/** Messages are never taken out: what was posted while the list was on its way is newer than the list. */
function refreshed(old: ThreadState, messages: Message[], headId: Id | null | undefined): ThreadState {
  const next = withMessages(old, messages)
  return { messages: next.messages, headId: headId ?? old.headId, status: 'ready', error: null }
}

async function readAll(id: Id): Promise<Message[]> {
  const all: Message[] = []
  let cursor: string | null = null
  do {
    const query: string = cursor ? `?cursor=${encodeURIComponent(cursor)}` : ''
    // oxlint-disable-next-line no-await-in-loop -- each page names the next
    const page: Page<Message> = await request(`/api/conversations/${id}/messages${query}`)
    all.push(...page.results)
    cursor = page.next
  } while (cursor)
  return all
}

export function mergeMessages(conversationId: Id, messages: readonly Message[], headId?: Id): void {
  const store = threads.get(conversationId)
  store?.set((old) => {
    const next = withMessages(old, messages)
    return { ...old, ...next, headId: headId ?? next.headId }
  })
}

/** The server's head moved: another tab switched or wrote. */
export function followHead(conversationId: Id, headId: Id | null): void {
  const store = threads.get(conversationId)
  if (!store || !headId) return
  if (store.get().messages.has(headId)) store.set((old) => (old.headId === headId ? old : { ...old, headId }))
  else void loadThread(conversationId, headId)
}

/** Show the branch through `messageId`, to its newest end, and tell the server. */
export async function selectBranch(conversationId: Id, messageId: Id): Promise<void> {
  const store = threadStore(conversationId)
  const before = store.get().headId
  const headId = leafOf(store.get(), messageId)
  store.set((old) => ({ ...old, headId }))
  try {
    await request(`/api/conversations/${conversationId}`, { method: 'PATCH', body: { head_message_id: headId } })
  } catch (error) {
    // Offline the choice still holds here; refused by the server it does not.
    if (!(error instanceof ApiError)) return
    store.set((old) => (old.headId === headId ? { ...old, headId: before } : old))
    throw error
  }
}

/** The answer of a run, if any thread here holds it. */
export function findRun(runId: Id): Message | null {
  for (const store of threads.values()) {
    for (const message of store.get().messages.values()) if (message.run_id === runId && message.role === 'assistant') return message
  }
  return null
}

export function forgetThreads(): void {
  threads.clear()
}

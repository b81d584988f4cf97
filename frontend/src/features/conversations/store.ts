/** The list of conversations: pages of it, local changes at once, and the server's notifications merged in. */
import { ApiError, request, type Conversation, type Id, type Page } from '@/shared/api'
import { createStore } from '@/shared/hooks'

export interface ConversationList {
  byId: ReadonlyMap<Id, Conversation>
  /** Cursor of the next page; null at the end, undefined before the first. */
  next: string | null | undefined
  status: 'idle' | 'loading' | 'ready' | 'error'
  error: unknown
}

const PAGE = 60
const start: ConversationList = { byId: new Map(), next: undefined, status: 'idle', error: null }
export const conversationList = createStore<ConversationList>(start)
let reading: Promise<void> | null = null
/** Changed here while a page was on its way: newer than the page, so its silence about them means nothing. */
const touched = new Set<Id>()

/** Read the first page again and keep what is loaded further down. */
export function refreshConversations(): Promise<void> {
  reading ??= readPage(null).finally(() => {
    reading = null
  })
  return reading
}

export function loadMoreConversations(): Promise<void> {
  const { next } = conversationList.get()
  if (!next) return Promise.resolve()
  reading ??= readPage(next).finally(() => {
    reading = null
  })
  return reading
}

async function readPage(cursor: string | null): Promise<void> {
  touched.clear()
  conversationList.set((old) => ({ ...old, status: 'loading' }))
  try {
    const page = await fetchConversations(cursor ? { cursor } : {})
    conversationList.set((old) => {
      const byId = new Map(old.byId)
      for (const item of page.results) if (!touched.has(item.id)) byId.set(item.id, item)
      // On a refresh, what should be on the first page and is not was deleted or archived elsewhere.
      if (!cursor) dropMissing(byId, page)
      const keepsEnd = !cursor && old.next !== undefined && byId.size > page.results.length
      return { byId, next: keepsEnd ? (old.next ?? null) : page.next, status: 'ready', error: null }
    })
  } catch (error) {
    conversationList.set((old) => ({ ...old, status: 'error', error }))
  }
}

function dropMissing(byId: Map<Id, Conversation>, page: Page<Conversation>): void {
  const listed = new Set(page.results.map((item) => item.id))
  const oldest = page.next === null ? '' : page.results.reduce((min, item) => (item.updated_at < min ? item.updated_at : min), '~')
  for (const [id, item] of byId) {
    if (!listed.has(id) && !touched.has(id) && item.updated_at > oldest) byId.delete(id)
  }
}

export interface ListQuery {
  q?: string
  archived?: boolean
  deleted?: boolean
  cursor?: string
}

export function fetchConversations(query: ListQuery, signal?: AbortSignal): Promise<Page<Conversation>> {
  const params = new URLSearchParams({ limit: String(PAGE) })
  for (const [name, value] of Object.entries(query)) if (value !== undefined) params.set(name, String(value))
  return request(`/api/conversations?${params}`, signal ? { signal } : {})
}

/** Newer knowledge of one conversation, from wherever it came. */
export function upsertConversation(conversation: Conversation): void {
  touched.add(conversation.id)
  conversationList.set((old) => {
    const byId = new Map(old.byId)
    if (conversation.deleted_at) byId.delete(conversation.id)
    else byId.set(conversation.id, conversation)
    return { ...old, byId }
  })
}

export function patchConversation(id: Id, change: Partial<Conversation>): void {
  const old = conversationList.get().byId.get(id)
  if (old) upsertConversation({ ...old, ...change })
}

/** Change on screen first, then on the server; a refusal puts the old value back and is thrown. */
export async function updateConversation(
  id: Id,
  change: Partial<Pick<Conversation, 'title' | 'pinned' | 'archived'>>,
): Promise<void> {
  const before = conversationList.get().byId.get(id)
  patchConversation(id, change)
  try {
    upsertConversation(await request<Conversation>(`/api/conversations/${id}`, { method: 'PATCH', body: change }))
  } catch (error) {
    if (before) upsertConversation(before)
    throw error
  }
}

export async function deleteConversation(id: Id): Promise<void> {
  const before = conversationList.get().byId.get(id)
  touched.add(id)
  conversationList.set((old) => ({ ...old, byId: without(old.byId, id) }))
  try {
    await request(`/api/conversations/${id}`, { method: 'DELETE' })
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return
    if (before) upsertConversation(before)
    throw error
  }
}

export async function restoreConversation(id: Id): Promise<void> {
  upsertConversation(await request<Conversation>(`/api/conversations/${id}/restore`, { method: 'POST' }))
}

/** What is known of a conversation, read from the server when it is not on a loaded page: it was opened by its address. */
export async function ensureConversation(id: Id): Promise<Conversation> {
  const known = conversationList.get().byId.get(id)
  if (known) return known
  const conversation = await request<Conversation>(`/api/conversations/${id}`)
  upsertConversation(conversation)
  return conversation
}

export function forgetConversations(): void {
  conversationList.set(start)
}

function without(byId: ReadonlyMap<Id, Conversation>, id: Id): Map<Id, Conversation> {
  const copy = new Map(byId)
  copy.delete(id)
  return copy
}

/** Who is here: the site's facts and the signed-in person, and what has to be forgotten when they leave. */
import { ApiError, SIGNED_OUT, clearResources, request, type Me, type Site } from '@/shared/api'
import { clearOutbox, forgetDrafts, forgetThreads } from '@/features/chat'
import { clearRecords, clearUploads } from '@/features/files'
import { forgetConversations } from '@/features/conversations'
import { createStore, isString, navigate, readStored, writeStored } from '@/shared/hooks'

export interface Session {
  state: 'starting' | 'unreachable' | 'anonymous' | 'signed-in'
  site: Site | null
  me: Me | null
  /** The session ended under a page that is in use. */
  expired: boolean
}

export const sessionStore = createStore<Session>({ state: 'starting', site: null, me: null, expired: false })
const LAST_USER = 'user'

export async function startSession(): Promise<void> {
  try {
    const site = await request<Site>('/api/site')
    const me = site.setup_needed ? null : await readMe()
    if (me) keepOnlyOwn(me)
    const console = me && sentFromConsole()
    if (console) return location.replace(console)
    sessionStore.set({ state: me ? 'signed-in' : 'anonymous', site, me, expired: false })
  } catch (error) {
    sessionStore.set((old) => ({ ...old, state: 'unreachable' }))
    if (!(error instanceof Error)) throw error
  }
}

/** The page of the operators' console that sent the person here to sign in; it lives outside this app. */
function sentFromConsole(): string | null {
  const next = location.pathname === '/sign-in' ? new URLSearchParams(location.search).get('next') : null
  return next?.startsWith('/admin/') ? next : null
}

async function readMe(): Promise<Me | null> {
  try {
    return await request<Me>('/api/me')
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return null
    throw error
  }
}

/** Drafts and unsent messages belong to one person; another one on the same browser must not see or send them. */
function keepOnlyOwn(me: Me): void {
  const last = readStored(LAST_USER, isString)
  if (last !== null && last !== me.user.id) forgetLocal()
  writeStored(LAST_USER, me.user.id)
}

function forgetLocal(): void {
  clearOutbox()
  forgetDrafts()
  clearUploads()
  clearRecords()
}

export function changeMe(me: Me): void {
  sessionStore.set((old) => ({ ...old, me }))
}

/** Signed out on purpose: nothing of this person stays in the browser. */
export function endSession(): void {
  forgetLocal()
  forgetThreads()
  forgetConversations()
  clearResources()
  writeStored(LAST_USER, null)
  navigate('/')
  sessionStore.set((old) => ({ ...old, state: 'starting', me: null, expired: false }))
  void startSession()
}

/** The same person signed in again over the page. */
export function renewSession(): void {
  sessionStore.set((old) => ({ ...old, expired: false }))
}

window.addEventListener(SIGNED_OUT, () => {
  sessionStore.set((old) => (old.state === 'signed-in' ? { ...old, expired: true } : old))
})

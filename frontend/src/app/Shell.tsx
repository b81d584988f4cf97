/** The signed-in frame: sidebar or drawer, the page of the current route, shortcuts, and the link to the server's news. */
import { Suspense, lazy, useCallback, useEffect, useRef, useState } from 'react'
import { ChatPage, dropOldDrafts, isLocalId, outbox, readDraft, startChatSync, writeDraft } from '@/features/chat'
import { Sidebar, conversationList, refreshConversations, titleOf, type SidebarApi } from '@/features/conversations'
import { attachmentFromFile, restoreUploads } from '@/features/files'
import { emitNotification, emitSync, onSync, type FileRecord, type Me, type Site } from '@/shared/api'
import { NARROW, isBoolean, navigate, readStored, useHotkeys, useMediaQuery, usePath, useStore, writeStored } from '@/shared/hooks'
import { Dialog, IconButton, Skeleton } from '@/shared/ui'
import { IconSidebar } from '@/shared/ui/icons'
import { openNotifications } from '@/stream'
import { ErrorBoundary } from './ErrorBoundary'
import { Header } from './Header'
import { changeMe, endSession } from './session'
import styles from './Shell.module.css'
import { ShortcutsDialog } from './ShortcutsDialog'
import { UserMenu } from './UserMenu'

const FilesPage = lazy(() => import('@/features/files/FilesPage'))
const SettingsPage = lazy(() => import('@/features/settings'))
const SIDEBAR = 'sidebar'

export function Shell({ site, me }: { site: Site; me: Me }) {
  const path = usePath()
  const narrow = useMediaQuery(NARROW)
  const [wide, setWide] = useState(() => readStored(SIDEBAR, isBoolean) ?? true)
  const [drawer, setDrawer] = useState(false)
  const [shortcuts, setShortcuts] = useState(false)
  const sidebar = useRef<SidebarApi>(null)
  const conversationId = /^\/c\/([\w-]+)$/.exec(path)?.[1] ?? null
  const settings = /^\/settings(?:\/([\w-]*))?$/.exec(path)
  useServerNews()
  useTitle(conversationId, settings !== null, site.name)

  const setSidebar = useCallback((open: boolean) => {
    setWide(open)
    writeStored(SIDEBAR, open)
  }, [])
  const openSidebar = () => (narrow ? setDrawer(true) : setSidebar(true))
  const search = (event: KeyboardEvent) => {
    event.preventDefault()
    openSidebar()
    // The field exists after the next paint.
    requestAnimationFrame(() => sidebar.current?.focusSearch())
  }
  useHotkeys({
    'Ctrl+K': search,
    'Ctrl+Shift+O': (event) => {
      event.preventDefault()
      navigate('/')
    },
    'Ctrl+/': () => setShortcuts(true),
    'Ctrl+B': (event) => {
      event.preventDefault()
      if (narrow) setDrawer(true)
      else setSidebar(!wide)
    },
  })
  const closeDrawer = useCallback(() => setDrawer(false), [])
  const hidden = narrow || !wide
  const side = (
    <SidebarFrame me={me} site={site} onShortcuts={() => setShortcuts(true)} onClose={() => (narrow ? setDrawer(false) : setSidebar(false))}>
      <Sidebar ref={sidebar} currentId={conversationId} onOpen={closeDrawer} />
    </SidebarFrame>
  )
  const header = <Header conversationId={conversationId} onSidebar={hidden ? openSidebar : null} />
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#main">
        Skip to the conversation
      </a>
      {!hidden && <div className={styles.side}>{side}</div>}
      {narrow && drawer && (
        <Dialog title="Conversations" hideTitle variant="drawer" onClose={closeDrawer}>
          {side}
        </Dialog>
      )}
      <main id="main" className={styles.main} tabIndex={-1}>
        <ErrorBoundary resetKey={path}>
          {settings ? (
            <div className={styles.settings}>
              <Header conversationId={null} onSidebar={hidden ? openSidebar : null} />
              <Suspense fallback={<div className={styles.settingsLoading}><Skeleton /></div>}>
                <SettingsPage
                  me={me}
                  site={site}
                  section={settings[1] ?? ''}
                  onSection={(section) => navigate(section ? `/settings/${section}` : '/settings')}
                  onMeChange={changeMe}
                  onSignedOut={endSession}
                />
              </Suspense>
            </div>
          ) : path === '/files' ? (
            <Suspense fallback={<div className={styles.settingsLoading}><Skeleton /></div>}>
              <FilesPage header={<Header conversationId={null} onSidebar={hidden ? openSidebar : null} />} onAsk={askAbout} />
            </Suspense>
          ) : (
            <ChatPage conversationId={conversationId} userName={me.user.name} header={header} />
          )}
        </ErrorBoundary>
      </main>
      {shortcuts && <ShortcutsDialog onClose={() => setShortcuts(false)} />}
    </div>
  )
}

/** A new conversation with the file attached; what was written for it already stays. */
function askAbout(file: FileRecord): void {
  const draft = readDraft(null)
  const others = draft.attachments.filter((item) => item.key !== file.id)
  writeDraft(null, { ...draft, attachments: [...others, attachmentFromFile(file)] })
  navigate('/')
}

interface FrameProps {
  me: Me
  site: Site
  onShortcuts: () => void
  onClose: () => void
  children: React.ReactNode
}

function SidebarFrame({ me, site, onShortcuts, onClose, children }: FrameProps) {
  return (
    <div className={styles.frame}>
      <header className={styles.brand}>
        <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width="26" height="26" />
        <span className={styles.brandName}>{site.name}</span>
        <IconButton label="Hide the sidebar" shortcut="Ctrl+B" onClick={onClose}>
          <IconSidebar />
        </IconButton>
      </header>
      {children}
      <div className={styles.foot}>
        <UserMenu me={me} onShortcuts={onShortcuts} />
      </div>
    </div>
  )
}

/** Notifications while the shell is on screen, and a sync of the list whenever some may have been missed. */
function useServerNews(): void {
  useEffect(() => {
    dropOldDrafts()
    restoreUploads()
    void refreshConversations()
    const stops = [
      startChatSync(),
      onSync(() => void refreshConversations()),
      openNotifications({ onNotification: emitNotification, onSync: emitSync }),
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }, [])
}

function useTitle(conversationId: string | null, settings: boolean, site: string): void {
  const title = useStore(conversationList, (list) => {
    const conversation = conversationId ? list.byId.get(conversationId) : undefined
    return conversation ? titleOf(conversation) : null
  })
  const page = settings ? 'Settings' : title
  useEffect(() => {
    document.title = page ? `${page} – ${site}` : site
  }, [page, site])
  useLostLocal(conversationId)
}

/** A local address whose message is neither waiting nor known any more: an old tab, or the back button. */
function useLostLocal(conversationId: string | null): void {
  const waiting = useStore(outbox, (entries) => entries.some((entry) => entry.conversationId === conversationId))
  useEffect(() => {
    if (conversationId && isLocalId(conversationId) && !waiting) navigate('/', { replace: true })
  }, [conversationId, waiting])
}

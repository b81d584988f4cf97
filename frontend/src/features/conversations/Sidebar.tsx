/** New conversation, search, and the list of conversations. The shell gives it its frame and its foot. */
import { useEffect, useImperativeHandle, useMemo, useRef, useState, type Ref } from 'react'
import type { Conversation } from '@/shared/api'
import { Link, isMac, usePath, useStore } from '@/shared/hooks'
import { Button, IconButton, Notice, Skeleton } from '@/shared/ui'
import { IconArchive, IconClose, IconFile, IconNew, IconSearch } from '@/shared/ui/icons'
import { titleOf } from './actions'
import { ArchiveDialog } from './ArchiveDialog'
import { ConversationRow } from './ConversationRow'
import { groupConversations } from './groups'
import styles from './Sidebar.module.css'
import { conversationList, loadMoreConversations, refreshConversations } from './store'
import { useSearch } from './useSearch'

export interface SidebarApi {
  focusSearch: () => void
}

export interface SidebarProps {
  currentId: string | null
  /** A conversation or the new one was opened: a drawer closes. */
  onOpen: () => void
  ref?: Ref<SidebarApi>
}

export function Sidebar({ currentId, onOpen, ref }: SidebarProps) {
  const path = usePath()
  const [query, setQuery] = useState('')
  const [archiveOpen, setArchiveOpen] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  useImperativeHandle(ref, () => ({ focusSearch: () => field.current?.select() }))
  const key = isMac ? '⌘' : 'Ctrl+'
  return (
    <nav className={styles.nav} aria-label="Conversations">
      <div className={styles.top}>
        <Link href="/" className={styles.new} aria-keyshortcuts="Control+Shift+O" title={`New conversation (${key}Shift+O)`} onClick={onOpen}>
          <IconNew aria-hidden />
          New conversation
        </Link>
        <div className={styles.search}>
          <IconSearch aria-hidden />
          <input
            ref={field}
            type="search"
            aria-label="Search conversations by title"
            aria-keyshortcuts="Control+K"
            placeholder="Search"
            value={query}
            onChange={(event) => setQuery(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === 'Escape' && query !== '') {
                event.stopPropagation()
                setQuery('')
              }
            }}
          />
          {query === '' ? (
            <kbd className={styles.kbd}>{key}K</kbd>
          ) : (
            <IconButton size="s" label="Clear the search" onClick={() => setQuery('')}>
              <IconClose />
            </IconButton>
          )}
        </div>
      </div>
      <div className={styles.scroll}>
        {query.trim() === '' ? (
          <AllConversations currentId={currentId} onOpen={onOpen} />
        ) : (
          <SearchResults query={query} currentId={currentId} onOpen={onOpen} />
        )}
        <Link href="/files" className={styles.archive} aria-current={path === '/files' ? 'page' : undefined} onClick={onOpen}>
          <IconFile aria-hidden />
          Files
        </Link>
        <button type="button" className={styles.archive} onClick={() => setArchiveOpen(true)}>
          <IconArchive aria-hidden />
          Archived and deleted
        </button>
      </div>
      {archiveOpen && <ArchiveDialog onClose={() => setArchiveOpen(false)} onOpen={onOpen} />}
    </nav>
  )
}

interface ListProps {
  currentId: string | null
  onOpen: () => void
}

function AllConversations({ currentId, onOpen }: ListProps) {
  const list = useStore(conversationList)
  const groups = useMemo(() => groupConversations(list.byId.values()), [list.byId])
  if (list.status === 'error' && list.byId.size === 0) {
    return (
      <div className={styles.note}>
        <Notice tone="danger" actions={<Button size="s" onClick={() => void refreshConversations()}>Try again</Button>}>
          Conversations could not be loaded.
        </Notice>
      </div>
    )
  }
  if (list.byId.size === 0 && list.status !== 'ready') {
    return (
      <div className={styles.skeleton} role="status" aria-label="Loading conversations">
        <Skeleton lines={[70, 88, 60, 80, 66, 90, 54]} />
      </div>
    )
  }
  if (groups.length === 0) return <p className={styles.empty}>Your conversations will be listed here.</p>
  return (
    <>
      {groups.map((group) => (
        <section key={group.key} aria-labelledby={`group-${group.key}`}>
          <h2 id={`group-${group.key}`} className={styles.heading}>
            {group.label}
          </h2>
          <Rows items={group.items} currentId={currentId} query="" onOpen={onOpen} />
        </section>
      ))}
      {list.next && <More busy={list.status === 'loading'} />}
    </>
  )
}

function Rows({ items, currentId, query, onOpen }: ListProps & { items: readonly Conversation[]; query: string }) {
  return (
    <ul className={styles.list}>
      {items.map((item) => (
        <ConversationRow key={item.id} conversation={item} current={item.id === currentId} query={query} onOpen={onOpen} />
      ))}
    </ul>
  )
}

/** Loads the next page when it comes near; the button is for keyboards and for observers that never fire. */
function More({ busy }: { busy: boolean }) {
  const ref = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (!ref.current || busy) return
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && void loadMoreConversations(), { rootMargin: '600px' })
    observer.observe(ref.current)
    return () => observer.disconnect()
  }, [busy])
  return (
    <div ref={ref} className={styles.more}>
      <Button size="s" variant="ghost" busy={busy} onClick={() => void loadMoreConversations()}>
        Show more
      </Button>
    </div>
  )
}

function SearchResults({ query, currentId, onOpen }: ListProps & { query: string }) {
  const list = useStore(conversationList)
  const { results, searching, failed } = useSearch(query)
  const needle = query.trim().toLowerCase()
  const local = [...list.byId.values()].filter((item) => !item.archived && titleOf(item).toLowerCase().includes(needle))
  const known = new Set(local.map((item) => item.id))
  const all = [...local, ...(results ?? []).filter((item) => !known.has(item.id))].toSorted((a, b) =>
    b.updated_at.localeCompare(a.updated_at),
  )
  const summary = searching ? 'Searching…' : failed ? 'Only loaded conversations were searched.' : all.length === 0 ? `No title contains “${query.trim()}”.` : ''
  return (
    <section aria-label="Search results">
      <p className={styles.empty} role="status">
        {summary || <span className="visually-hidden">{all.length} found</span>}
      </p>
      <Rows items={all} currentId={currentId} query={query} onOpen={onOpen} />
    </section>
  )
}

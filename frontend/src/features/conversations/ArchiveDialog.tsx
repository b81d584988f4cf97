/** Conversations that were put away: archived for good, or deleted and still to be had for thirty days. */
import { useEffect, useState } from 'react'
import { describeError, type Conversation } from '@/shared/api'
import { Link } from '@/shared/hooks'
import { Button, Dialog, Notice, Skeleton, toast } from '@/shared/ui'
import { addressOf, titleOf, unarchive } from './actions'
import styles from './ArchiveDialog.module.css'
import { fetchConversations, restoreConversation } from './store'

type Tab = 'archived' | 'deleted'

export function ArchiveDialog({ onClose, onOpen }: { onClose: () => void; onOpen: () => void }) {
  const [tab, setTab] = useState<Tab>('archived')
  return (
    <Dialog title="Archived and deleted" onClose={onClose}>
      <div className={styles.tabs} role="group" aria-label="Which conversations">
        <Button size="s" variant={tab === 'archived' ? 'secondary' : 'ghost'} aria-pressed={tab === 'archived'} onClick={() => setTab('archived')}>
          Archived
        </Button>
        <Button size="s" variant={tab === 'deleted' ? 'secondary' : 'ghost'} aria-pressed={tab === 'deleted'} onClick={() => setTab('deleted')}>
          Deleted
        </Button>
      </div>
      <Listed
        key={tab}
        tab={tab}
        onOpen={() => {
          onOpen()
          onClose()
        }}
      />
    </Dialog>
  )
}

function Listed({ tab, onOpen }: { tab: Tab; onOpen: () => void }) {
  const [items, setItems] = useState<readonly Conversation[] | null>(null)
  const [next, setNext] = useState<string | null>(null)
  const [error, setError] = useState<unknown>(null)
  const load = (cursor: string | null, signal?: AbortSignal) =>
    fetchConversations({ [tab]: true, ...(cursor ? { cursor } : {}) }, signal).then(
      (page) => {
        setItems((old) => [...(cursor ? (old ?? []) : []), ...page.results])
        setNext(page.next)
      },
      (reason: unknown) => !signal?.aborted && setError(reason),
    )
  useEffect(() => {
    const abort = new AbortController()
    void load(null, abort.signal)
    return () => abort.abort()
    // Once per tab: the component has a key.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [])
  if (error) return <Notice tone="danger">{describeError(error)}</Notice>
  if (!items) return <Skeleton lines={[80, 60, 90]} />
  if (items.length === 0) return <p className={styles.none}>{tab === 'archived' ? 'Nothing is archived.' : 'Nothing was deleted in the last thirty days.'}</p>
  const bringBack = (item: Conversation) => {
    setItems((old) => (old ?? []).filter((other) => other.id !== item.id))
    if (tab === 'archived') return unarchive(item)
    restoreConversation(item.id).then(
      () => toast(`“${titleOf(item)}” is back`, { tone: 'success' }),
      (reason: unknown) => toast(describeError(reason), { tone: 'error' }),
    )
  }
  return (
    <>
      <ul className={styles.list}>
        {items.map((item) => (
          <li key={item.id} className={styles.item}>
            {tab === 'archived' ? (
              <Link href={addressOf(item)} className={styles.title} dir="auto" onClick={onOpen}>
                {titleOf(item)}
              </Link>
            ) : (
              <span className={styles.title} dir="auto">
                {titleOf(item)}
              </span>
            )}
            <Button size="s" onClick={() => bringBack(item)}>
              {tab === 'archived' ? 'Unarchive' : 'Restore'}
            </Button>
          </li>
        ))}
      </ul>
      {next && (
        <Button size="s" variant="ghost" onClick={() => void load(next)}>
          Show more
        </Button>
      )}
    </>
  )
}

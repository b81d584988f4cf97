/** One conversation: its messages, the composer, and the page of a citation beside it. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { Attachment } from '@/features/files'
import { describeError, type Id, type Message, type MessageFile } from '@/shared/api'
import { navigate, useHotkeys, useStore } from '@/shared/hooks'
import { Button, Notice, Skeleton, cx } from '@/shared/ui'
import { ensureConversation } from '../conversations/store'
import styles from './ChatPage.module.css'
import { CitationPanel, type OpenCitation } from './CitationPanel'
import { Composer, type ComposerApi } from './Composer'
import { EmptyState } from './EmptyState'
import { MessageList } from './MessageList'
import { ModelBanner } from './ModelBanner'
import { useModels } from './models'
import { isLocalId, outbox, type OutboxEntry } from './outbox'
import { cancelRun, sendMessage, stopEntry, viewKey } from './service'
import { emptyThread, isFinal, pathOf, type Thread } from './thread'
import { loadThread, openEmptyThread, threadStore, type ThreadState } from './threads'
import { useFileDrop } from './useFileDrop'

export interface ChatPageProps {
  /** Null for a new conversation. */
  conversationId: Id | null
  userName: string
  header: React.ReactNode
}

export function ChatPage({ conversationId, userName, header }: ChatPageProps) {
  const thread = useThread(conversationId)
  const pending = usePending(conversationId)
  const choice = useModels()
  const composer = useRef<ComposerApi>(null)
  const [editing, setEditing] = useState<Id | null>(null)
  const [cited, setCited] = useState<OpenCitation | null>(null)
  const path = useMemo(() => shownPath(thread, pending), [thread, pending])
  const running = path.find((message) => message.role === 'assistant' && !isFinal(message)) ?? null
  const busy = running !== null || pending.length > 0
  const modelNames = useMemo(() => new Map(choice.models.map((model) => [model.id, model.name])), [choice.models])
  const drop = useFileDrop((files) => composer.current?.addFiles(files))

  const stop = () => {
    if (running?.run_id) void cancelRun(running.run_id)
    else if (pending[0]) stopEntry(pending[0])
  }
  const editLast = () => {
    const last = path.findLast((message) => message.role === 'user')
    if (last && !busy) setEditing(last.id)
  }
  useHotkeys({ Escape: () => busy && stop() })
  useFreshPage(conversationId, composer, () => {
    setEditing(null)
    setCited(null)
  })

  const send = (text: string, attachments: readonly Attachment[]) => {
    const parentId = path.at(-1)?.id ?? null
    sendMessage({ conversationId, text, parentId, files: attachments.flatMap(toMessageFile), model: choice.chosen })
  }
  const cite = useCallback((citation: OpenCitation['citation'], all: OpenCitation['all']) => setCited({ citation, all }), [])
  const empty = conversationId === null || (thread.status === 'ready' && path.length === 0 && pending.length === 0)
  return (
    <div className={styles.page} data-panel={cited !== null || undefined}>
      <div className={cx(styles.column, empty && styles.empty)} {...drop.handlers}>
        {header}
        {empty && <EmptyState name={userName} onIdea={(text) => composer.current?.suggest(text)} />}
        {!empty && thread.status === 'loading' && <Loading />}
        {!empty && (thread.status === 'error' || thread.status === 'missing') && <Problem thread={thread} id={conversationId} />}
        {!empty && thread.status === 'ready' && (
          <MessageList
            key={viewKey(conversationId)}
            conversationId={conversationId}
            thread={thread}
            path={path}
            pending={pending}
            busy={busy}
            model={choice.chosen}
            modelNames={modelNames}
            editing={editing}
            onEdit={setEditing}
            onCite={cite}
          />
        )}
        {thread.status !== 'missing' && (
          <div className={styles.dock}>
            <ModelBanner choice={choice} />
            <Composer ref={composer} conversationId={conversationId} choice={choice} busy={busy} onStop={stop} onSend={send} onEditLast={editLast} />
            <p className={styles.fine}>Answers can be wrong. Check what matters.</p>
          </div>
        )}
        {drop.over && (
          <div className={styles.drop} aria-hidden>
            <p>Drop files to attach them</p>
          </div>
        )}
      </div>
      {cited && <CitationPanel open={cited} onSelect={(citation) => setCited({ ...cited, citation })} onClose={() => setCited(null)} />}
    </div>
  )
}

const NEW: ThreadState = { ...emptyThread, status: 'ready', error: null }
const blank = { get: () => NEW, set: () => undefined, subscribe: () => () => undefined }

function useThread(id: Id | null): ThreadState {
  const store = useMemo(() => (id ? threadStore(id) : blank), [id])
  useEffect(() => {
    if (!id) return
    if (isLocalId(id)) return openEmptyThread(id)
    void loadThread(id, headOf(id))
  }, [id])
  return useStore(store)
}

/** Which branch the server shows. Without an answer the newest one is shown; a missing conversation shows in its messages. */
async function headOf(id: Id): Promise<Id | null> {
  try {
    return (await ensureConversation(id)).head_message_id
  } catch {
    return null
  }
}

function usePending(id: Id | null): readonly OutboxEntry[] {
  const entries = useStore(outbox)
  return useMemo(() => entries.filter((entry) => entry.conversationId === id), [entries, id])
}

/** The branch on screen, cut where a message that is being sent hangs on. */
function shownPath(thread: Thread, pending: readonly OutboxEntry[]): Message[] {
  const path = pathOf(thread)
  const first = pending[0]
  if (!first) return path
  const at = first.parentId === null ? -1 : path.findIndex((message) => message.id === first.parentId)
  return at === -1 && first.parentId !== null ? path : path.slice(0, at + 1)
}

function toMessageFile({ file }: Attachment): MessageFile[] {
  return file ? [{ id: file.id, name: file.name, page_count: file.page_count, state: file.state }] : []
}

/** Another conversation was opened: what belonged to the last one is put away, and the composer takes the focus. */
function useFreshPage(id: Id | null, composer: React.RefObject<ComposerApi | null>, reset: () => void): void {
  const key = id ? viewKey(id) : null
  const [last, setLast] = useState(key)
  if (last !== key) {
    setLast(key)
    reset()
  }
  useEffect(() => {
    // On a phone the keyboard would cover what was opened to be read.
    if (window.matchMedia('(pointer: fine)').matches) composer.current?.focus()
  }, [key, composer])
}

function Loading() {
  return (
    <div className={styles.loading} role="status" aria-label="Loading the conversation">
      <div className={styles.loadingQuestion}>
        <Skeleton lines={[100]} />
      </div>
      <Skeleton lines={[96, 100, 88, 60]} />
      <Skeleton lines={[92, 97, 40]} />
    </div>
  )
}

function Problem({ thread, id }: { thread: ThreadState; id: Id }) {
  const missing = thread.status === 'missing'
  return (
    <div className={styles.problem}>
      <h1 className={styles.problemTitle}>{missing ? 'This conversation is not here' : 'The conversation could not be loaded'}</h1>
      <Notice tone={missing ? 'info' : 'danger'}>
        {missing ? 'It was deleted, or the address is not complete.' : describeError(thread.error)}
      </Notice>
      <div className={styles.problemActions}>
        {missing ? (
          <Button variant="primary" onClick={() => navigate('/')}>
            New conversation
          </Button>
        ) : (
          <Button
            variant="primary"
            onClick={() => {
              threadStore(id).set((old) => ({ ...old, status: 'loading' }))
              void loadThread(id)
            }}
          >
            Try again
          </Button>
        )}
      </div>
    </div>
  )
}

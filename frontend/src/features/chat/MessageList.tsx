/** The branch on screen. Turns off screen cost no layout, and older ones are mounted while the browser is idle. */
import { Fragment, memo, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { describeError, type Citation, type Id, type Message } from '@/shared/api'
import { IconButton, toast } from '@/shared/ui'
import { IconDown } from '@/shared/ui/icons'
import { AssistantMessage } from './AssistantMessage'
import styles from './MessageList.module.css'
import type { OutboxEntry } from './outbox'
import { PendingTurn } from './PendingTurn'
import { branchFrom, regenerate, sendMessage } from './service'
import { siblingIndex, type Thread } from './thread'
import { selectBranch } from './threads'
import { UserMessage } from './UserMessage'
import { useGrowingWindow } from './useGrowingWindow'
import { useScrollFollow } from './useScrollFollow'

export interface MessageListProps {
  conversationId: Id
  thread: Thread
  path: readonly Message[]
  pending: readonly OutboxEntry[]
  busy: boolean
  model: string
  modelNames: ReadonlyMap<string, string>
  editing: Id | null
  onEdit: (messageId: Id | null) => void
  onCite: (citation: Citation, all: readonly Citation[]) => void
}

export function MessageList(props: MessageListProps) {
  const { conversationId, thread, path, pending, busy, model, modelNames, editing, onEdit, onCite } = props
  const { scroller, content, atEnd, toEnd } = useScrollFollow()
  const first = useGrowingWindow(path.length)
  const siblings = useMemo(() => siblingIndex(thread), [thread])
  const anchored = useAnchoredTurn(path, pending, toEnd)
  useRoomAbove(scroller, first)

  const select = useCallback(
    (messageId: Id) => {
      selectBranch(conversationId, messageId).catch((error: unknown) => toast(describeError(error), { tone: 'error' }))
    },
    [conversationId],
  )
  // Read when something is clicked, not given to a thousand messages that would all render again for it.
  const now = useRef({ busy, model })
  useEffect(() => {
    now.current = { busy, model }
  })
  const free = useCallback(() => {
    if (now.current.busy) toast('Wait for the answer that is being written, or stop it first.')
    return !now.current.busy
  }, [])
  const submitEdit = useCallback(
    (message: Message, text: string) => {
      if (!free()) return false
      const { conversation_id, parent_id: parentId, files } = message
      sendMessage({ conversationId: conversation_id, text, parentId, files, model: now.current.model })
      return true
    },
    [free],
  )
  const again = useCallback(
    (message: Message) => {
      if (free()) regenerate(message, now.current.model)
    },
    [free],
  )
  const branch = useCallback((message: Message) => void branchFrom(message), [])

  const turns = useMemo(() => toTurns(path.slice(first)), [path, first])
  return (
    <div className={styles.scroller} ref={scroller} data-testid="messages">
      <div className={styles.content} ref={content}>
        {turns.map((turn, index) => {
          const lastTurn = index === turns.length - 1 && pending.length === 0
          return (
            <section key={turn[0]?.id} className={styles.turn} data-anchored={(lastTurn && anchored) || undefined}>
              {turn.map((message) => (
                <Fragment key={message.id}>
                  {message.role === 'user' ? (
                    <UserMessage
                      message={message}
                      siblings={siblings.get(message.id) ?? NONE}
                      editing={editing === message.id}
                      onEdit={onEdit}
                      onSubmit={submitEdit}
                      onSelect={select}
                    />
                  ) : (
                    <AssistantMessage
                      message={message}
                      siblings={siblings.get(message.id) ?? NONE}
                      modelName={message.model ? (modelNames.get(message.model) ?? message.model) : null}
                      last={lastTurn}
                      onCite={onCite}
                      onRegenerate={again}
                      onSelect={select}
                      onBranch={branch}
                    />
                  )}
                </Fragment>
              ))}
            </section>
          )
        })}
        {pending.map((entry, index) => (
          <section key={entry.clientId} className={styles.turn} data-anchored={(anchored && index === pending.length - 1) || undefined}>
            <PendingTurn entry={entry} />
          </section>
        ))}
      </div>
      <JumpToEnd hidden={atEnd} onJump={() => toEnd(true)} />
    </div>
  )
}

const NONE: readonly string[] = []

const JumpToEnd = memo(function JumpToEnd({ hidden, onJump }: { hidden: boolean; onJump: () => void }) {
  return (
    <div className={styles.jump} data-hidden={hidden || undefined}>
      <IconButton label="Jump to the end" className={styles.jumpButton} tabIndex={hidden ? -1 : 0} onClick={onJump}>
        <IconDown />
      </IconButton>
    </div>
  )
})

/** A question and what follows it up to the next question. */
function toTurns(messages: readonly Message[]): Message[][] {
  const turns: Message[][] = []
  for (const message of messages) {
    const turn = turns.at(-1)
    if (turn && message.role !== 'user') turn.push(message)
    else turns.push([message])
  }
  return turns
}

/** From the first message sent here on, the last turn is as high as the window: the question moves to the top and its
 * answer grows into free space instead of pushing text upwards. */
function useAnchoredTurn(path: readonly Message[], pending: readonly OutboxEntry[], toEnd: (smooth?: boolean) => void): boolean {
  const newest = pending.at(-1)?.clientId ?? null
  const [mounted] = useState(() => newest)
  const [anchored, setAnchored] = useState(false)
  const last = useRef(mounted)
  useEffect(() => {
    if (newest === null || newest === last.current) return
    last.current = newest
    setAnchored(true)
    // After the turn has got its height.
    const frame = requestAnimationFrame(() => toEnd(path.length > 0))
    return () => cancelAnimationFrame(frame)
  }, [newest, toEnd, path.length])
  return anchored
}

/** The browser keeps the reader's place while older turns are put above it, except at the very top: step off that. */
function useRoomAbove(scroller: React.RefObject<HTMLDivElement | null>, first: number): void {
  useEffect(() => {
    const node = scroller.current
    if (!node || first === 0) return
    const leave = () => {
      if (node.scrollTop < 1) node.scrollTop = 1
    }
    node.addEventListener('scroll', leave, { passive: true })
    return () => node.removeEventListener('scroll', leave)
  }, [scroller, first])
}

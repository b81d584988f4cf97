/** A question that this browser holds and the server has not acknowledged yet, with what it waits for. */
import { useEffect, useState } from 'react'
import { useOnline } from '@/shared/hooks'
import { Button, Notice } from '@/shared/ui'
import { IconClock, IconOffline } from '@/shared/ui/icons'
import styles from './Message.module.css'
import { useModels } from './models'
import type { OutboxEntry } from './outbox'
import { Dots, Line } from './RunStatus'
import { discardEntry, retryEntry } from './service'
import { MessageFiles } from './UserMessage'

export function PendingTurn({ entry }: { entry: OutboxEntry }) {
  return (
    <>
      {entry.kind === 'post' && (
        <article className={styles.user} aria-label="Your question, being sent">
          <MessageFiles files={entry.files} />
          <div className={styles.bubble} dir="auto">
            {entry.text}
          </div>
          <div className={styles.actions} />
        </article>
      )}
      <article className={styles.assistant} aria-label="Answer" aria-busy>
        {entry.refusal ? <Refused entry={entry} /> : <Sending entry={entry} />}
      </article>
    </>
  )
}

function Sending({ entry }: { entry: OutboxEntry }) {
  const online = useOnline()
  const [since] = useState(() => Date.now())
  const now = useNow(1000)
  if (!online) {
    return <Line icon={<IconOffline aria-hidden />}>You are offline. The message is kept and goes out when you are back.</Line>
  }
  if (now - Math.max(since, Date.parse(entry.createdAt)) > 4000) {
    return <Line icon={<IconClock aria-hidden />}>The server does not answer yet. The message is kept; trying again…</Line>
  }
  return (
    <Line icon={<Dots />}>
      <span className="visually-hidden">Sending</span>
    </Line>
  )
}

function Refused({ entry }: { entry: OutboxEntry }) {
  const now = useNow(1000)
  const { refusal } = entry
  const { models } = useModels()
  if (!refusal) return null
  const { alternative } = refusal
  const left = refusal.retryAt === null ? null : Math.max(0, Math.ceil((refusal.retryAt - now) / 1000))
  return (
    <Notice
      live
      tone={left === null ? 'danger' : 'warn'}
      actions={
        <>
          {entry.kind === 'post' && (
            <Button size="s" onClick={() => discardEntry(entry)}>
              Edit
            </Button>
          )}
          {entry.kind === 'regenerate' && (
            <Button size="s" onClick={() => discardEntry(entry)}>
              Dismiss
            </Button>
          )}
          {alternative && (
            <Button size="s" onClick={() => retryEntry(entry, alternative)}>
              Ask {models.find((model) => model.id === alternative)?.name ?? alternative}
            </Button>
          )}
          <Button size="s" variant="primary" onClick={() => retryEntry(entry)}>
            Try now
          </Button>
        </>
      }
    >
      {refusal.message}
      {left !== null && <span aria-hidden> {left > 0 ? `Trying again in ${left} s.` : 'Trying again…'}</span>}
    </Notice>
  )
}

function useNow(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return now
}

/** What an answer waits for: a place in the queue, its first word, or its connection. */
import { useEffect, useState } from 'react'
import { IconClock, IconOffline } from '@/shared/ui/icons'
import type { Message } from '@/shared/api'
import type { LiveRun } from '@/stream'
import { roughly } from './models'
import styles from './RunStatus.module.css'

const LONG_WAIT_MS = 6_000

export function RunStatus({ message, live, started }: { message: Message; live: LiveRun | null; started: boolean }) {
  const view = live?.view
  // Several tries in a row have failed before this is worth a word.
  const lost = useDelayed(live?.status === 'waiting', 2_500)
  const slow = useDelayed(!started, LONG_WAIT_MS)
  if (lost) {
    return (
      <Line icon={<IconOffline aria-hidden />}>
        Connection lost. The answer goes on at the server; reconnecting…
      </Line>
    )
  }
  if (view?.state === 'queued' && view.position !== null) {
    const wait = view.estimatedWaitS
    return (
      <Line icon={<IconClock aria-hidden />}>
        {view.position <= 1 ? 'Next in the queue' : `Place ${view.position} in the queue`}
        {wait !== null && `, ${roughly(wait)}`}
      </Line>
    )
  }
  if (started) return <Caret />
  if (view && view.lookingIn.length > 0) return <Line icon={<Dots />}>Looking in {view.lookingIn.join(', ')}</Line>
  const attempt = view?.attempt ?? 1
  return (
    <Line icon={<Dots />}>
      {attempt > 1 ? 'Starting again on another replica' : slow ? 'Still thinking' : <span className="visually-hidden">Thinking</span>}
      <span className="visually-hidden">{message.status}</span>
    </Line>
  )
}

export function Line({ icon, children }: { icon: React.ReactNode; children: React.ReactNode }) {
  return (
    <p className={styles.line}>
      {icon}
      <span>{children}</span>
    </p>
  )
}

export function Dots() {
  return (
    <span className={styles.dots} aria-hidden>
      <i />
      <i />
      <i />
    </span>
  )
}

/** Shows that more is coming; quiet for people who asked for less motion. */
function Caret() {
  return <span className={styles.caret} aria-hidden />
}

function useDelayed(value: boolean, ms: number): boolean {
  const [late, setLate] = useState(false)
  useEffect(() => {
    if (!value) return
    const timer = setTimeout(() => setLate(true), ms)
    return () => {
      clearTimeout(timer)
      setLate(false)
    }
  }, [value, ms])
  return value && late
}

/** Where a run's time went, from what the server measured. Pure. */
import type { RunDetail } from '@/shared/api'

export interface Phase {
  kind: 'accepted' | 'waiting' | 'reading' | 'writing'
  label: string
  ms: number
}

type Timed = Pick<RunDetail, 'created_at' | 'started_at' | 'finished_at' | 'waited_ms' | 'ttft_ms' | 'completion_tokens'>

/** The phases that are over, in order. An unfinished run has none for what it has not done. */
export function phasesOf(run: Timed): Phase[] {
  if (!run.started_at) return []
  const started = Date.parse(run.started_at)
  const phases: Phase[] = [{ kind: 'accepted', label: 'Until a runner took it', ms: Math.max(0, started - Date.parse(run.created_at)) }]
  if (run.waited_ms === null) return phases
  phases.push({ kind: 'waiting', label: 'Waiting for a place', ms: run.waited_ms })
  if (run.ttft_ms === null) return phases
  phases.push({ kind: 'reading', label: 'Until the first word', ms: Math.max(0, run.ttft_ms - run.waited_ms) })
  const writing = writingMs(run)
  if (writing !== null) phases.push({ kind: 'writing', label: 'Writing', ms: writing })
  return phases
}

function writingMs(run: Timed): number | null {
  if (!run.started_at || !run.finished_at || run.ttft_ms === null) return null
  return Math.max(0, Date.parse(run.finished_at) - Date.parse(run.started_at) - run.ttft_ms)
}

/** Tokens after the first over the time after the first; null where that says nothing. */
export function tokensPerSecond(run: Timed): number | null {
  const ms = writingMs(run)
  return ms === null || ms < 1 || run.completion_tokens < 2 ? null : ((run.completion_tokens - 1) * 1000) / ms
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`
}

/** The union of run events, as the server's event log holds them, and the check at the border. Knows nothing of transport. */
import type { Citation, LeftOut, Message, Passage, RunError, Survey, UnreadyFile } from '@/shared/api/types'

export interface Usage {
  prompt_tokens: number
  cached_tokens: number
  completion_tokens: number
}

export interface StateEvent {
  type: 'state'
  state: 'queued' | 'running'
  attempt: number
  position: number | null
  estimated_wait_s: number | null
  model: string | null
  replica: string | null
  /** Files whose tables the model looks into before it answers. */
  looking_in?: string[]
}

/** Replaces the whole text: sent to a reader whose place in the log is gone. */
export interface SnapshotEvent {
  type: 'snapshot'
  text: string
}

export interface TextEvent {
  type: 'text'
  /** Code points of text before this delta. */
  at: number
  text: string
}

export interface PassagesEvent {
  type: 'passages'
  passages: Passage[]
  mode: 'hybrid' | 'mixed' | 'keyword' | 'away'
  unready: UnreadyFile[]
  left_out?: LeftOut[]
  /** For questions about whole files. */
  survey?: Survey | null
}

export interface ReconstructedEvent {
  type: 'reconstructed'
  at: number
  attempt: number
  replica: string | null
  /** The replica that went on has other weights, since no other was there. */
  other_weights?: boolean
}

/** A stronger model answers, since the answer of the first one failed its checks. */
export interface EscalatedEvent {
  type: 'escalated'
  from_model: string
  to_model: string
  why: string
}

export interface CitationsEvent {
  type: 'citations'
  citations: Citation[]
}

export interface DoneEvent {
  type: 'done'
  state: 'completed' | 'incomplete' | 'cancelled' | 'failed'
  finish_reason: 'stop' | 'length' | 'tool_calls' | 'cancelled' | null
  usage: Usage | null
  message: Message | null
  error: RunError | null
}

export type RunEvent =
  | StateEvent
  | SnapshotEvent
  | TextEvent
  | PassagesEvent
  | ReconstructedEvent
  | EscalatedEvent
  | CitationsEvent
  | DoneEvent

/** An event with its place in the run's log. */
export interface Sequenced {
  seq: number
  event: RunEvent
}

const KNOWN: ReadonlySet<string> = new Set<RunEvent['type']>([
  'state',
  'snapshot',
  'text',
  'passages',
  'reconstructed',
  'escalated',
  'citations',
  'done',
])

/** Null for what this client does not know (a newer server) and for what is not an event at all. */
export function parseEvent(data: string): RunEvent | null {
  let value: unknown
  try {
    value = JSON.parse(data)
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null) return null
  const { type } = value as { type?: unknown }
  return typeof type === 'string' && KNOWN.has(type) ? (value as RunEvent) : null
}

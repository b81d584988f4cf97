/**
 * What a reader of a run sees, as a pure function of its events: (view, event) -> view.
 * The same log gives the same view whatever was repeated, cut or resumed on the way. Offsets count code points, as the
 * server does; JavaScript's own strings count UTF-16 units.
 */
import type { Citation, Message, Passage, RunError, RunNotice, RunState } from '@/shared/api/types'
import type { DoneEvent, RunEvent, Sequenced, TextEvent, Usage } from './events'

export interface RunView {
  /** Sequence number of the last event applied. */
  seq: number
  text: string
  /** Code points in `text`. */
  length: number
  state: RunState
  attempt: number
  position: number | null
  estimatedWaitS: number | null
  model: string | null
  replica: string | null
  /** Files whose tables are being looked into. */
  lookingIn: readonly string[]
  passages: readonly Passage[]
  citations: readonly Citation[]
  notices: readonly RunNotice[]
  error: RunError | null
  finishReason: DoneEvent['finish_reason']
  usage: Usage | null
  /** The final record, once the run is over. */
  message: Message | null
  ended: boolean
  /** Text is missing before the last event: the transport must read again from `seq`. */
  gap: boolean
}

export const initialView: RunView = {
  seq: 0,
  text: '',
  length: 0,
  state: 'queued',
  attempt: 1,
  position: null,
  estimatedWaitS: null,
  model: null,
  replica: null,
  lookingIn: [],
  passages: [],
  citations: [],
  notices: [],
  error: null,
  finishReason: null,
  usage: null,
  message: null,
  ended: false,
  gap: false,
}

export function reduce(view: RunView, { seq, event }: Sequenced): RunView {
  if (view.ended) return view
  // A snapshot is where the server says the reader is, even when that is behind what the reader has seen.
  if (event.type === 'snapshot') {
    return { ...view, seq, gap: false, text: event.text, length: codePoints(event.text) }
  }
  if (seq <= view.seq) return view
  if (event.type === 'text') return appendText(view, seq, event)
  // Behind a gap nothing counts until the missing text came: except the end, which carries the whole message.
  if (view.gap && event.type !== 'done') return view
  return { ...apply(view, event), seq }
}

export function reduceAll(view: RunView, events: readonly Sequenced[]): RunView {
  return events.reduce(reduce, view)
}

function appendText(view: RunView, seq: number, event: TextEvent): RunView {
  if (event.at > view.length) return view.gap ? view : { ...view, gap: true }
  const kept = event.at < view.length ? cutAt(view.text, event.at) : view.text
  const text = kept + event.text
  const length = event.at + codePoints(event.text)
  return { ...view, seq, gap: false, text, length, ...(view.state === 'queued' ? RUNNING : {}) }
}

const RUNNING = { state: 'running', position: null, estimatedWaitS: null } as const

function apply(view: RunView, event: Exclude<RunEvent, { type: 'text' | 'snapshot' }>): RunView {
  switch (event.type) {
    case 'state':
      return {
        ...view,
        state: event.state,
        attempt: event.attempt,
        position: event.position,
        estimatedWaitS: event.estimated_wait_s,
        model: event.model ?? view.model,
        replica: event.replica ?? view.replica,
        lookingIn: event.looking_in ?? [],
      }
    case 'passages':
      return { ...view, passages: event.passages, notices: [...view.notices, ...searchNotices(event)] }
    case 'reconstructed': {
      const { at, attempt, replica, other_weights } = event
      const text = at < view.length ? cutAt(view.text, at) : view.text
      const notice: RunNotice = { kind: 'reconstructed', at, attempt, replica, ...(other_weights && { other_weights }) }
      return { ...view, text, length: Math.min(at, view.length), attempt, replica, notices: [...view.notices, notice] }
    }
    case 'escalated': {
      const { from_model, to_model, why } = event
      return { ...view, model: to_model, notices: [...view.notices, { kind: 'escalated', from_model, to_model, why }] }
    }
    case 'citations':
      return { ...view, citations: event.citations }
    case 'done':
      return finish(view, event)
    default:
      return view
  }
}

function searchNotices(event: Extract<RunEvent, { type: 'passages' }>): RunNotice[] {
  const notices: RunNotice[] = []
  if (event.mode === 'keyword') notices.push({ kind: 'keyword_only' })
  if (event.mode === 'away') notices.push({ kind: 'keyword_away' })
  if (event.mode === 'mixed') notices.push({ kind: 'keyword_partly' })
  if (event.unready.length > 0) notices.push({ kind: 'unready', files: event.unready })
  if (event.left_out?.length) notices.push({ kind: 'left_out', left_out: event.left_out })
  if (event.survey) notices.push({ kind: 'survey', survey: event.survey })
  return notices
}

function finish(view: RunView, event: DoneEvent): RunView {
  const text = event.message?.text ?? view.text
  return {
    ...view,
    text,
    length: codePoints(text),
    state: event.state,
    position: null,
    estimatedWaitS: null,
    citations: event.message?.citations ?? view.citations,
    // A runner that took over searched again and said so again: the record has each notice once.
    notices: event.message?.notices ?? view.notices,
    error: event.error,
    finishReason: event.finish_reason,
    usage: event.usage,
    message: event.message,
    ended: true,
    gap: false,
  }
}

export function codePoints(text: string): number {
  let count = text.length
  for (let index = 0; index < text.length - 1; index += 1) {
    if (isHigh(text.charCodeAt(index)) && isLow(text.charCodeAt(index + 1))) {
      count -= 1
      index += 1
    }
  }
  return count
}

/** The first `at` code points of `text`. */
function cutAt(text: string, at: number): string {
  let index = 0
  for (let left = at; left > 0 && index < text.length; left -= 1) {
    const pair = isHigh(text.charCodeAt(index)) && isLow(text.charCodeAt(index + 1))
    index += pair ? 2 : 1
  }
  return text.slice(0, index)
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff

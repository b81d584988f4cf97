/**
 * Reads one run's events over fetch until `done`, whatever happens on the way: resumes after the last event it delivered,
 * backs off with jitter, wakes with the page and the network, and notices a silent connection. Delivers in order; leaves
 * duplicates and gaps to the reducer.
 */
import { ApiError, toApiError } from '@/shared/api/client'
import type { Message } from '@/shared/api/types'
import { Backoff, onWake, type BackoffOptions } from './backoff'
import { parseEvent, type Sequenced } from './events'
import { SseParser } from './sse'

export type StreamStatus = 'connecting' | 'open' | 'waiting' | 'ended'

export interface StreamHandlers {
  /** All events that one network read brought. */
  onEvents: (events: Sequenced[]) => void
  onStatus?: (status: StreamStatus) => void
  /** The log has expired (410); the answer is over and this is its record. */
  onGone: (message: Message | null) => void
  /** The server refused for good: 401, 403, 404. */
  onRefused: (error: ApiError) => void
}

export interface StreamOptions extends BackoffOptions {
  startingAfter?: number
  fetch?: typeof fetch
  /** Silence longer than this is a dead connection; the server sends a heartbeat every 15 s. */
  silenceMs?: number
}

export interface StreamHandle {
  close: () => void
  /** Read again from this sequence number on; for a reader that found a gap. */
  restart: (startingAfter: number) => void
}

const SILENCE_MS = 40_000
/** A page that nobody looks at gives its connection back: a browser has six for each server, over all its tabs. */
const HIDDEN_MS = 60_000
/** After waking, a connection that was quiet this long is not trusted. */
const STALE_MS = 20_000

export function openRunStream(runId: string, handlers: StreamHandlers, options: StreamOptions = {}): StreamHandle {
  const stream = new RunStream(runId, handlers, options)
  stream.connect()
  return { close: () => stream.close(), restart: (after) => stream.restart(after) }
}

class RunStream {
  #after: number
  #closed = false
  #connection: AbortController | null = null
  #retry: ReturnType<typeof setTimeout> | undefined
  #watchdog: ReturnType<typeof setTimeout> | undefined
  #hidden: ReturnType<typeof setTimeout> | undefined
  #lastByte = 0
  readonly #backoff: Backoff
  readonly #stopWake: () => void

  constructor(
    private readonly runId: string,
    private readonly handlers: StreamHandlers,
    private readonly options: StreamOptions,
  ) {
    this.#after = options.startingAfter ?? 0
    this.#backoff = new Backoff(options)
    const stopWake = onWake((why) => this.#wake(why))
    const onVisibility = () => this.#watchHidden()
    document.addEventListener('visibilitychange', onVisibility)
    this.#stopWake = () => {
      stopWake()
      document.removeEventListener('visibilitychange', onVisibility)
    }
  }

  connect(): void {
    if (this.#closed) return
    clearTimeout(this.#retry)
    this.#retry = undefined
    this.#connection?.abort()
    const connection = new AbortController()
    this.#connection = connection
    this.#status('connecting')
    this.#feedWatchdog()
    void this.#read(connection).then(
      (ended) => {
        if (this.#connection === connection && !ended) this.#later(null)
      },
      (error: unknown) => {
        if (this.#connection === connection) this.#failed(error)
      },
    )
  }

  restart(startingAfter: number): void {
    this.#after = startingAfter
    // Through the back-off: a server that keeps a gap must not be asked in a tight loop.
    this.#later(null)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#retry)
    clearTimeout(this.#watchdog)
    clearTimeout(this.#hidden)
    this.#stopWake()
    this.#connection?.abort()
    this.#connection = null
    this.#status('ended')
  }

  /** True when the stream is over for good. */
  async #read(connection: AbortController): Promise<boolean> {
    const response = await (this.options.fetch ?? fetch)(`/api/runs/${this.runId}/events?starting_after=${this.#after}`, {
      headers: {
        Accept: 'text/event-stream',
        ...(this.#after > 0 ? { 'Last-Event-ID': String(this.#after) } : {}),
      },
      credentials: 'same-origin',
      cache: 'no-store',
      signal: connection.signal,
    })
    if (!response.ok) throw await toApiError(response)
    if (!response.body) return false
    this.#status('open')
    const reader = response.body.getReader()
    const decoder = new TextDecoder()
    const parser = new SseParser()
    try {
      for (;;) {
        // oxlint-disable-next-line no-await-in-loop -- a stream is read one chunk after the other
        const { done, value } = await reader.read()
        if (done || this.#connection !== connection) return false
        this.#feedWatchdog()
        if (this.#deliver(parser, decoder.decode(value, { stream: true }))) return true
        if (this.#connection !== connection) return false
      }
    } finally {
      // Frees the socket when the reader stops first; rejects when it was aborted already.
      reader.cancel().catch(() => undefined)
    }
  }

  #deliver(parser: SseParser, text: string): boolean {
    const events: Sequenced[] = []
    for (const frame of parser.push(text)) {
      const event = parseEvent(frame.data)
      const seq = Number(frame.id)
      if (!Number.isSafeInteger(seq) || frame.id === null) continue
      this.#after = event?.type === 'snapshot' ? seq : Math.max(this.#after, seq)
      if (event) events.push({ seq, event })
    }
    if (events.length === 0) return false
    this.#backoff.reset()
    const ended = events.some(({ event }) => event.type === 'done')
    if (ended) this.close()
    this.handlers.onEvents(events)
    return ended
  }

  #failed(error: unknown): void {
    if (!(error instanceof ApiError)) return this.#later(null)
    if (error.status === 410) {
      this.close()
      return this.handlers.onGone((error.problem['message'] as Message | undefined) ?? null)
    }
    if (error.status >= 400 && error.status < 500 && error.status !== 408 && error.status !== 429) {
      this.close()
      return this.handlers.onRefused(error)
    }
    this.#later(error.retryAfterS)
  }

  #later(retryAfterS: number | null): void {
    if (this.#closed) return
    this.#connection?.abort()
    this.#connection = null
    clearTimeout(this.#watchdog)
    clearTimeout(this.#retry)
    this.#status('waiting')
    const wait = Math.max(this.#backoff.next(), (retryAfterS ?? 0) * 1000)
    this.#retry = setTimeout(() => this.connect(), wait)
  }

  #wake(why: 'online' | 'visible'): void {
    const stale = why === 'online' || Date.now() - this.#lastByte > STALE_MS
    if (!this.#closed && (this.#connection === null || stale)) {
      this.#backoff.reset()
      this.connect()
    }
  }

  #watchHidden(): void {
    clearTimeout(this.#hidden)
    if (document.visibilityState !== 'hidden') return
    this.#hidden = setTimeout(() => this.#rest(), HIDDEN_MS)
  }

  /** Let go until the page is looked at again; waking connects whatever has no connection. */
  #rest(): void {
    if (this.#closed) return
    clearTimeout(this.#retry)
    clearTimeout(this.#watchdog)
    this.#connection?.abort()
    this.#connection = null
    this.#status('waiting')
  }

  #feedWatchdog(): void {
    this.#lastByte = Date.now()
    clearTimeout(this.#watchdog)
    this.#watchdog = setTimeout(() => this.#later(null), this.options.silenceMs ?? SILENCE_MS)
  }

  #status(status: StreamStatus): void {
    this.handlers.onStatus?.(status)
  }
}

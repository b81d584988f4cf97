/**
 * Posts what is in the outbox, one entry at a time and in one tab at a time, until the server has acknowledged it.
 * A lost answer is asked again with the same client id; a refusal is kept with its reason and repeated when the server said
 * when; what a person must decide stays until they do.
 */
import { ApiError, NetworkError, describeError, request, type Conversation, type Posted, type Regenerated } from '@/shared/api'
import { Backoff, onWake } from '@/stream/backoff'
import { dequeue, isLocalId, outbox, patchEntry, rename, type OutboxEntry } from './outbox'

export interface SenderHandlers {
  onConversation: (localId: string, conversation: Conversation) => void
  onPosted: (entry: OutboxEntry, result: Posted | Regenerated) => void
}

type Send = typeof request

const MAX_REFUSALS = 5
const DEFAULT_RETRY_S = 5
const IN_FLIGHT_S = 1

export class Sender {
  /** The entry whose post is on its way right now. */
  inFlight: string | null = null
  #running = false
  #again = false
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly #backoff = new Backoff({ baseMs: 500, maxMs: 15_000 })
  #stopWake: (() => void) | null = null

  constructor(
    private readonly handlers: SenderHandlers,
    private readonly send: Send = request,
  ) {}

  start(): () => void {
    this.#stopWake ??= onWake(() => {
      this.#backoff.reset()
      this.flush()
    })
    this.flush()
    return () => {
      clearTimeout(this.#timer)
      this.#stopWake?.()
      this.#stopWake = null
    }
  }

  /** Try now. Cheap to call often. */
  flush(): void {
    clearTimeout(this.#timer)
    if (this.#running) {
      this.#again = true
      return
    }
    this.#running = true
    void withLock(() => this.#drain()).finally(() => {
      this.#running = false
      if (this.#again) {
        this.#again = false
        this.flush()
      }
    })
  }

  /** A person asks for another try of a refused entry. */
  retry(clientId: string): void {
    patchEntry(clientId, { refusal: null, refusals: 0 })
    this.#backoff.reset()
    this.flush()
  }

  async #drain(): Promise<void> {
    const tried = new Set<string>()
    for (;;) {
      const entry = outbox.get().find((item) => isDue(item) && !tried.has(item.clientId))
      if (!entry) break
      tried.add(entry.clientId)
      // oxlint-disable-next-line no-await-in-loop -- in order, one at a time: a later message hangs on an earlier one
      const reached = await this.#deliver(entry)
      if (!reached) return this.#later(this.#backoff.next())
      this.#backoff.reset()
    }
    const next = Math.min(...outbox.get().map((item) => item.refusal?.retryAt ?? Infinity))
    if (next < Infinity) this.#later(Math.max(0, next - Date.now()) + 20)
  }

  /** False when no answer came and everything has to wait for the network. */
  async #deliver(entry: OutboxEntry): Promise<boolean> {
    this.inFlight = entry.clientId
    try {
      const conversationId = await this.#conversation(entry)
      // Taken back while its conversation was being made.
      if (!outbox.get().some((item) => item.clientId === entry.clientId)) return true
      const result = await this.#post(entry, conversationId)
      this.handlers.onPosted({ ...entry, conversationId }, result)
      dequeue(entry.clientId)
      return true
    } catch (error) {
      if (isTransient(error)) return false
      this.#refused(entry, error)
      return true
    } finally {
      this.inFlight = null
    }
  }

  async #conversation(entry: OutboxEntry): Promise<string> {
    if (!isLocalId(entry.conversationId)) return entry.conversationId
    const conversation = await this.send<Conversation>('/api/conversations', {
      method: 'POST',
      body: { title: '' },
      headers: { 'Idempotency-Key': entry.conversationId.slice('new-'.length) },
    })
    // Stored before anything is posted to it: a reload now must not make a second conversation.
    rename(entry.conversationId, conversation.id)
    this.handlers.onConversation(entry.conversationId, conversation)
    return conversation.id
  }

  #post(entry: OutboxEntry, conversationId: string): Promise<Posted | Regenerated> {
    const base = `/api/conversations/${conversationId}/messages`
    const headers = { 'Idempotency-Key': entry.clientId }
    if (entry.kind === 'regenerate') {
      const body = { client_id: entry.clientId, model: entry.model }
      return this.send<Regenerated>(`${base}/${entry.answerId}/regenerate`, { method: 'POST', headers, body })
    }
    const body = {
      client_id: entry.clientId,
      text: entry.text,
      parent_id: entry.parentId,
      file_ids: entry.files.map((file) => file.id),
      model: entry.model,
    }
    return this.send<Posted>(base, { method: 'POST', headers, body })
  }

  #refused(entry: OutboxEntry, error: unknown): void {
    const api = error instanceof ApiError ? error : null
    const inFlight = api?.code === 'idempotency_in_flight'
    const refusals = entry.refusals + (inFlight ? 0 : 1)
    const seconds = inFlight ? IN_FLIGHT_S : (api?.retryAfterS ?? DEFAULT_RETRY_S)
    const again = inFlight || (api !== null && (api.status === 429 || api.status >= 500) && refusals <= MAX_REFUSALS)
    patchEntry(entry.clientId, {
      refusals,
      refusal: {
        code: api?.code ?? 'unknown',
        message: describeError(error),
        retryAt: again ? Date.now() + seconds * 1000 : null,
        alternative: typeof api?.problem['alternative'] === 'string' ? api.problem['alternative'] : null,
      },
    })
  }

  #later(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.flush(), Math.min(ms, 2 ** 31 - 1))
  }
}

function isDue(entry: OutboxEntry): boolean {
  if (!entry.refusal) return true
  return entry.refusal.retryAt !== null && entry.refusal.retryAt <= Date.now()
}

/** No word from Parley itself: the network, or a proxy in front of a server that restarts. */
function isTransient(error: unknown): boolean {
  if (error instanceof NetworkError) return true
  return error instanceof ApiError && error.code.startsWith('http_') && error.status >= 502 && error.status <= 504
}

/** One sender over all tabs where the browser can do that; elsewhere the client id alone keeps things single. */
async function withLock(work: () => Promise<void>): Promise<void> {
  if (!('locks' in navigator)) return work()
  await navigator.locks.request('parley.outbox', work)
}

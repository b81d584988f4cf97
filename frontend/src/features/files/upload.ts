/**
 * One upload from its first byte to the server's "it is complete", as a plain async function. Retries what may be retried,
 * resumes from the parts that have arrived, and takes new addresses when the signed ones have expired.
 * Leaves keeping track of several uploads and showing them to uploads.ts.
 */
import { ApiError, NetworkError, type FileRecord, type Id, type UploadPlan } from '@/shared/api'
import { Backoff, onWake } from '@/stream/backoff'
import type { PartTag, UploadTransport } from './transport'

/** Lets at most `size` holders work at the same time, in the order in which they asked. */
export class Slots {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(size: number) {
    this.#free = size
  }

  async hold<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free += 1
    }
  }
}

export interface UploadOptions {
  blob: Blob
  name: string
  contentType: string
  /** A file that an earlier attempt announced and did not finish. */
  resume: Id | null
  transport: UploadTransport
  slots: Slots
  signal: AbortSignal
  onFile: (file: FileRecord | null, id: Id) => void
  onProgress: (sentBytes: number) => void
  /** All bytes are there; the server is asked to join them. */
  onCompleting: () => void
  /** True while nothing is sent because the network or the server has to come back. */
  onWaiting: (waiting: boolean) => void
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>
}

const MAX_TRIES = 8
/** A part whose address was refused this often has another trouble than age. */
const MAX_REFRESHES = 3

/** Resolves to the file in state `processing`. Rejects with an ApiError that a person may read, or an AbortError. */
export async function runUpload(options: UploadOptions): Promise<FileRecord> {
  const upload = new Upload(options)
  return upload.run()
}

class Upload {
  readonly #options: UploadOptions
  readonly #sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** Bytes sent of each part that is under way or done. */
  readonly #sent = new Map<number, number>()
  readonly #tags = new Map<number, string>()
  #id: Id = ''
  #plan: UploadPlan = { part_size: 0, parts: [], expires_at: '' }
  #refresh: Promise<void> | null = null
  #generation = 0
  #refreshes = 0

  constructor(options: UploadOptions) {
    this.#options = options
    this.#sleep = options.sleep ?? sleepOrWake
  }

  async run(): Promise<FileRecord> {
    await this.#begin()
    try {
      return await this.#sendAndComplete()
    } catch (error) {
      // The server misses a part that it had confirmed: ask what it has and send the rest once more.
      if (!(error instanceof ApiError && error.status === 422)) throw error
      await this.#takeStatus()
      return this.#sendAndComplete()
    }
  }

  async #begin(): Promise<void> {
    const { resume, transport, blob, name, contentType, signal, onFile } = this.#options
    if (resume !== null && (await this.#tryResume(resume))) return
    const { file, upload } = await this.#retrying(() => transport.create({ name, size: blob.size, content_type: contentType }, signal))
    this.#id = file.id
    this.#plan = upload
    onFile(file, file.id)
  }

  /** False when that upload is gone (finished, expired or deleted), so that a new one must be begun. */
  async #tryResume(id: Id): Promise<boolean> {
    this.#id = id
    try {
      await this.#takeStatus()
    } catch (error) {
      if (error instanceof ApiError && (error.status === 404 || error.status === 409 || error.status === 410)) return false
      throw error
    }
    this.#options.onFile(null, id)
    return true
  }

  async #takeStatus(): Promise<void> {
    const { transport, signal } = this.#options
    const status = await this.#retrying(() => transport.status(this.#id, signal))
    this.#plan = status
    this.#generation += 1
    const sizes = new Map(status.parts.map((part) => [part.number, part.size]))
    this.#tags.clear()
    for (const part of status.received) {
      if (sizes.get(part.number) !== part.size) continue
      this.#tags.set(part.number, part.etag)
      this.#sent.set(part.number, part.size)
    }
    for (const number of this.#sent.keys()) if (!this.#tags.has(number)) this.#sent.delete(number)
    this.#report()
  }

  async #sendAndComplete(): Promise<FileRecord> {
    const { transport, signal, slots } = this.#options
    const missing = this.#plan.parts.filter((part) => !this.#tags.has(part.number))
    // One failed part ends the others: nothing should go on sending for an upload that is given up.
    const group = new AbortController()
    const both = AbortSignal.any([signal, group.signal])
    try {
      await Promise.all(missing.map((part) => slots.hold(() => this.#sendPart(part.number, both))))
    } catch (error) {
      group.abort()
      throw error
    }
    const parts: PartTag[] = [...this.#tags].map(([number, etag]) => ({ number, etag })).toSorted((a, b) => a.number - b.number)
    this.#options.onCompleting()
    return this.#retrying(() => transport.complete(this.#id, parts, signal))
  }

  async #sendPart(number: number, signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      const generation = this.#generation
      try {
        // oxlint-disable-next-line no-await-in-loop -- each turn is a new try of the same part
        const etag = await this.#retrying(() => this.#put(number, signal), signal)
        this.#tags.set(number, etag)
        return
      } catch (error) {
        this.#sent.delete(number)
        if (!(error instanceof ApiError) || !isStaleAddress(error)) throw error
        // oxlint-disable-next-line no-await-in-loop
        await this.#refreshFrom(generation)
        if (this.#tags.has(number)) return
      }
    }
  }

  #put(number: number, signal: AbortSignal): Promise<string> {
    const { transport, blob } = this.#options
    const part = this.#plan.parts.find((entry) => entry.number === number)
    if (!part) throw new ApiError(409, 'conflict', 'The upload has changed on the server. Upload the file again.')
    const start = (number - 1) * this.#plan.part_size
    const onProgress = (sent: number) => {
      this.#sent.set(number, Math.min(sent, part.size))
      this.#report()
    }
    return transport.put(part.url, blob.slice(start, start + part.size), onProgress, signal)
  }

  /** New addresses, fetched once for all parts that found theirs too old. */
  #refreshFrom(generation: number): Promise<void> {
    if (generation !== this.#generation) return this.#refresh ?? Promise.resolve()
    this.#refreshes += 1
    if (this.#refreshes > MAX_REFRESHES) return Promise.reject(new ApiError(502, 'storage_refused', 'The storage refuses the file. Try again later.'))
    this.#generation += 1
    this.#refresh = this.#freshAddresses()
    return this.#refresh
  }

  async #freshAddresses(): Promise<void> {
    const { transport, signal } = this.#options
    this.#plan = await this.#retrying(() => transport.status(this.#id, signal))
  }

  #report(): void {
    let sum = 0
    for (const bytes of this.#sent.values()) sum += bytes
    this.#options.onProgress(sum)
  }

  async #retrying<T>(work: () => Promise<T>, signal = this.#options.signal): Promise<T> {
    const backoff = new Backoff({ baseMs: 500, maxMs: 20_000 })
    for (;;) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- a retry waits for the try before it
        return await work()
      } catch (error) {
        signal.throwIfAborted()
        if (!mayRetry(error) || (navigator.onLine && backoff.failures >= MAX_TRIES)) throw error
        this.#options.onWaiting(true)
        const asked = error instanceof ApiError ? (error.retryAfterS ?? 0) * 1000 : 0
        // oxlint-disable-next-line no-await-in-loop
        await this.#sleep(Math.max(asked, backoff.next()), signal)
        this.#options.onWaiting(false)
      }
    }
  }
}

function mayRetry(error: unknown): boolean {
  if (error instanceof NetworkError) return true
  return error instanceof ApiError && (error.status >= 500 || error.status === 429 || error.status === 408)
}

/** Signed addresses live for minutes; our store and S3 answer 400, 403, 404 or 410 to one that is too old. */
function isStaleAddress(error: ApiError): boolean {
  return error.code.startsWith('http_') && [400, 401, 403, 404, 410].includes(error.status)
}

/** Ends early when the network comes back or the page wakes up. While offline it lasts until then. */
export function sleepOrWake(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let timer = 0
    const stopWake = onWake(() => finish())
    const aborted = () => finish(signal.reason as Error)
    function finish(error?: Error) {
      clearTimeout(timer)
      stopWake()
      signal.removeEventListener('abort', aborted)
      if (error) reject(error)
      else resolve()
    }
    signal.addEventListener('abort', aborted)
    if (signal.aborted) aborted()
    else if (navigator.onLine) timer = window.setTimeout(() => finish(), ms)
    else timer = window.setTimeout(() => finish(), Math.max(ms, 60_000))
  })
}

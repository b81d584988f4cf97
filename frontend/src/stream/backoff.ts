/** Exponential back-off with full jitter: many clients of one restarted server must not come back at the same moment. */
export interface BackoffOptions {
  baseMs?: number
  maxMs?: number
  random?: () => number
}

export class Backoff {
  #failures = 0
  readonly #baseMs: number
  readonly #maxMs: number
  readonly #random: () => number

  constructor({ baseMs = 400, maxMs = 15_000, random = Math.random }: BackoffOptions = {}) {
    this.#baseMs = baseMs
    this.#maxMs = maxMs
    this.#random = random
  }

  get failures(): number {
    return this.#failures
  }

  /** Milliseconds to wait before the next try; at least half the step, so that "full" jitter is never no wait at all. */
  next(): number {
    const step = Math.min(this.#maxMs, this.#baseMs * 2 ** Math.min(this.#failures, 20))
    this.#failures += 1
    return step / 2 + (this.#random() * step) / 2
  }

  reset(): void {
    this.#failures = 0
  }
}

/** Calls back when a connection is worth trying again: the network came back, or the page woke up. */
export function onWake(callback: (why: 'online' | 'visible') => void): () => void {
  const online = () => callback('online')
  const visible = () => {
    if (document.visibilityState === 'visible') callback('visible')
  }
  window.addEventListener('online', online)
  document.addEventListener('visibilitychange', visible)
  // Pages restored from the back/forward cache have dead connections and no visibility change.
  window.addEventListener('pageshow', visible)
  return () => {
    window.removeEventListener('online', online)
    document.removeEventListener('visibilitychange', visible)
    window.removeEventListener('pageshow', visible)
  }
}

/**
 * Running answers that this tab reads: one transport and one view a run, shared by all who watch it. Updates reach React
 * at most once a frame. Leaves what happens with a finished message to whoever watches.
 */
import { createStore, type Store } from '@/shared/hooks/store'
import type { ApiError } from '@/shared/api/client'
import type { Id, Message } from '@/shared/api/types'
import type { Sequenced } from './events'
import { initialView, reduceAll, type RunView } from './reducer'
import { openRunStream, type StreamHandle, type StreamHandlers, type StreamOptions, type StreamStatus } from './transport'

export interface LiveRun {
  view: RunView
  status: StreamStatus
}

export interface LiveHandlers {
  /** The run is over; null when the server no longer says how it ended. */
  onEnd: (runId: Id, message: Message | null, view: RunView) => void
  onRefused: (runId: Id, error: ApiError) => void
}

type Open = (runId: string, handlers: StreamHandlers, options?: StreamOptions) => StreamHandle

interface Watched {
  store: Store<LiveRun>
  handle: StreamHandle | null
  watchers: number
  /** What is reduced already and waits for the next frame. */
  next: RunView
  frame: (() => void) | null
  gaps: number
}

const MAX_GAPS = 3

export class LiveRuns {
  readonly #runs = new Map<Id, Watched>()

  constructor(
    private readonly handlers: LiveHandlers,
    private readonly open: Open = openRunStream,
  ) {}

  /** Watch a run until the returned function is called; the stream closes with its last watcher. */
  watch(runId: Id): () => void {
    const run = this.#runs.get(runId) ?? this.#start(runId)
    run.watchers += 1
    let released = false
    return () => {
      if (released) return
      released = true
      run.watchers -= 1
      // A page that changes its mind within the same turn keeps its stream.
      queueMicrotask(() => {
        if (run.watchers === 0 && this.#runs.get(runId) === run) this.#stop(runId, run)
      })
    }
  }

  store(runId: Id): Store<LiveRun> | null {
    return this.#runs.get(runId)?.store ?? null
  }

  #start(runId: Id): Watched {
    const run: Watched = {
      store: createStore<LiveRun>({ view: initialView, status: 'connecting' }),
      handle: null,
      watchers: 0,
      next: initialView,
      frame: null,
      gaps: 0,
    }
    this.#runs.set(runId, run)
    run.handle = this.open(runId, {
      onEvents: (events) => this.#received(runId, run, events),
      onStatus: (status) => run.store.set((old) => ({ ...old, status })),
      onGone: (message) => this.#ended(runId, run, message),
      onRefused: (error) => {
        run.store.set({ view: run.next, status: 'ended' })
        this.handlers.onRefused(runId, error)
      },
    })
    return run
  }

  #received(runId: Id, run: Watched, events: Sequenced[]): void {
    run.next = reduceAll(run.next, events)
    if (run.next.ended) return this.#ended(runId, run, run.next.message)
    if (run.next.gap) return this.#heal(runId, run)
    run.frame ??= onNextFrame(() => {
      run.frame = null
      run.store.set((old) => ({ ...old, view: run.next }))
    })
  }

  /** Read the missing part again; then everything; then let the stored message speak. */
  #heal(runId: Id, run: Watched): void {
    run.gaps += 1
    if (run.gaps > MAX_GAPS) return this.#ended(runId, run, null)
    if (run.gaps > 1) run.next = initialView
    run.next = { ...run.next, gap: false }
    run.handle?.restart(run.next.seq)
  }

  #ended(runId: Id, run: Watched, message: Message | null): void {
    run.frame?.()
    run.frame = null
    run.handle?.close()
    // The view stays for those who watch, until the stored message takes its place.
    run.store.set({ view: run.next, status: 'ended' })
    this.handlers.onEnd(runId, message, run.next)
  }

  #stop(runId: Id, run: Watched): void {
    run.frame?.()
    run.handle?.close()
    if (this.#runs.get(runId) === run) this.#runs.delete(runId)
  }
}

/** Runs once, at the next frame; soon as well where no frames come, as in a hidden tab. Returns how to call it off. */
function onNextFrame(work: () => void): () => void {
  if (document.visibilityState === 'hidden') {
    const timer = setTimeout(work, 100)
    return () => clearTimeout(timer)
  }
  const frame = requestAnimationFrame(work)
  return () => cancelAnimationFrame(frame)
}

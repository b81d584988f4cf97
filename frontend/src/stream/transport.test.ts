import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Sequenced } from './events'
import { openRunStream, type StreamHandle, type StreamStatus } from './transport'

type Script = (call: { url: string; headers: Record<string, string>; signal: AbortSignal }) => Response | Promise<Response>

const event = (seq: number, data: object) => `id: ${seq}\ndata: ${JSON.stringify(data)}\n\n`
const text = (seq: number, at: number, delta: string) => event(seq, { type: 'text', at, text: delta })
const done = (seq: number) => event(seq, { type: 'done', state: 'completed', finish_reason: 'stop', usage: null, message: null, error: null })

function body(chunks: string[], end: 'close' | 'hang' | 'error', signal?: AbortSignal): Response {
  const encoder = new TextEncoder()
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(encoder.encode(chunk))
      if (end === 'close') controller.close()
      if (end === 'error') setTimeout(() => controller.error(new TypeError('network')), 0)
      signal?.addEventListener('abort', () => {
        try {
          controller.error(new DOMException('aborted', 'AbortError'))
        } catch {
          // closed before
        }
      })
    },
  })
  return new Response(stream, { headers: { 'Content-Type': 'text/event-stream' } })
}

const problem = (status: number, extra: object, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify({ status, code: 'x', detail: 'x', ...extra }), { status, headers })

function start(scripts: Script[], options: { startingAfter?: number; silenceMs?: number } = {}) {
  const calls: { url: string; headers: Record<string, string> }[] = []
  const seen: Sequenced[] = []
  const statuses: StreamStatus[] = []
  const gone = vi.fn()
  const refused = vi.fn()
  const fetcher = vi.fn(async (url: string, init: RequestInit) => {
    const call = { url, headers: init.headers as Record<string, string>, signal: init.signal as AbortSignal }
    calls.push(call)
    const script = scripts[Math.min(calls.length, scripts.length) - 1]
    if (!script) throw new Error('no script')
    return script(call)
  })
  const handle = openRunStream(
    'r1',
    { onEvents: (events) => seen.push(...events), onStatus: (status) => statuses.push(status), onGone: gone, onRefused: refused },
    { ...options, fetch: fetcher as unknown as typeof fetch, random: () => 1, baseMs: 100, maxMs: 800 },
  )
  open.push(handle)
  return { calls, seen, statuses, gone, refused, handle }
}

const open: StreamHandle[] = []
beforeEach(() => vi.useFakeTimers())
afterEach(() => {
  for (const handle of open.splice(0)) handle.close()
  vi.useRealTimers()
})

describe('a run stream', () => {
  test('ends at done and asks no more', async () => {
    const { calls, seen, statuses } = start([({ signal }) => body([text(1, 0, 'a'), done(2)], 'hang', signal)])
    await vi.advanceTimersByTimeAsync(60_000)
    expect(seen.map(({ seq }) => seq)).toEqual([1, 2])
    expect(calls).toHaveLength(1)
    expect(statuses.at(-1)).toBe('ended')
  })

  test('resumes after its last event when the connection is cut', async () => {
    const { calls, seen } = start([
      () => body([text(1, 0, 'a'), text(2, 1, 'b')], 'error'),
      () => body([text(3, 2, 'c'), done(4)], 'close'),
    ])
    await vi.advanceTimersByTimeAsync(1000)
    expect(calls[1]?.url).toBe('/api/runs/r1/events?starting_after=2')
    expect(calls[1]?.headers['Last-Event-ID']).toBe('2')
    expect(seen.map(({ seq }) => seq)).toEqual([1, 2, 3, 4])
  })

  test('a clean end without done is a cut as well', async () => {
    const { calls } = start([() => body([text(1, 0, 'a')], 'close'), () => body([done(2)], 'close')])
    await vi.advanceTimersByTimeAsync(1000)
    expect(calls).toHaveLength(2)
  })

  test('waits longer from try to try and not beyond the limit', async () => {
    const times: number[] = []
    const refuse: Script = () => {
      times.push(Date.now())
      throw new TypeError('refused')
    }
    start([refuse])
    await vi.advanceTimersByTimeAsync(4000)
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0))
    expect(gaps.slice(0, 5)).toEqual([100, 200, 400, 800, 800])
  })

  test('obeys Retry-After', async () => {
    const { calls } = start([() => problem(503, {}, { 'Retry-After': '7' }), () => body([done(1)], 'close')])
    await vi.advanceTimersByTimeAsync(6900)
    expect(calls).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(200)
    expect(calls).toHaveLength(2)
  })

  test('gives up a silent connection after 40 s; a heartbeat keeps it', async () => {
    let beat: ReadableStreamDefaultController<Uint8Array> | undefined
    const { calls } = start([
      () => new Response(new ReadableStream<Uint8Array>({ start: (controller) => void (beat = controller) })),
      () => body([done(1)], 'close'),
    ])
    await vi.advanceTimersByTimeAsync(35_000)
    beat?.enqueue(new TextEncoder().encode(': hb\n\n'))
    await vi.advanceTimersByTimeAsync(35_000)
    expect(calls).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(6_000)
    expect(calls).toHaveLength(2)
  })

  test('tries at once when the network is back', async () => {
    const { calls } = start([
      () => {
        throw new TypeError('offline')
      },
      () => body([done(1)], 'close'),
    ])
    await vi.advanceTimersByTimeAsync(1)
    window.dispatchEvent(new Event('online'))
    await vi.advanceTimersByTimeAsync(1)
    expect(calls).toHaveLength(2)
  })

  test('a page that is hidden for long lets go, and resumes when it is looked at', async () => {
    let visibility: DocumentVisibilityState = 'visible'
    vi.spyOn(document, 'visibilityState', 'get').mockImplementation(() => visibility)
    const show = (state: DocumentVisibilityState) => {
      visibility = state
      document.dispatchEvent(new Event('visibilitychange'))
    }
    const signals: AbortSignal[] = []
    const { calls } = start([
      ({ signal }) => {
        signals.push(signal)
        return body([text(1, 0, 'a')], 'hang', signal)
      },
      () => body([done(2)], 'close'),
    ], { silenceMs: 1_000_000 })
    await vi.advanceTimersByTimeAsync(10)
    show('hidden')
    await vi.advanceTimersByTimeAsync(30_000)
    expect(signals[0]?.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(31_000)
    expect(signals[0]?.aborted).toBe(true)
    await vi.advanceTimersByTimeAsync(300_000)
    expect(calls).toHaveLength(1)
    show('visible')
    await vi.advanceTimersByTimeAsync(10)
    expect(calls[1]?.url).toContain('starting_after=1')
    vi.restoreAllMocks()
  })

  test('an expired log ends with the final message', async () => {
    const { gone, calls } = start([() => problem(410, { code: 'gone', message: { id: 'm1' } })])
    await vi.advanceTimersByTimeAsync(5000)
    expect(gone).toHaveBeenCalledExactlyOnceWith({ id: 'm1' })
    expect(calls).toHaveLength(1)
  })

  test.each([401, 403, 404])('%i is final', async (status) => {
    const { refused, calls } = start([() => problem(status, {})])
    await vi.advanceTimersByTimeAsync(5000)
    expect(refused).toHaveBeenCalledTimes(1)
    expect(calls).toHaveLength(1)
  })

  test('a snapshot behind the reader moves the place to resume from back', async () => {
    const { calls } = start([
      () => body([text(9, 0, 'a'), event(4, { type: 'snapshot', text: 'x' })], 'close'),
      () => body([done(5)], 'close'),
    ])
    await vi.advanceTimersByTimeAsync(1000)
    expect(calls[1]?.url).toContain('starting_after=4')
  })

  test('nothing comes after close', async () => {
    const { calls, seen, handle } = start([({ signal }) => body([text(1, 0, 'a')], 'hang', signal)])
    await vi.advanceTimersByTimeAsync(10)
    handle.close()
    window.dispatchEvent(new Event('online'))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(calls).toHaveLength(1)
    expect(seen).toHaveLength(1)
  })
})

import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Message } from '@/shared/api'
import type { RunEvent } from './events'
import { LiveRuns } from './live'
import type { StreamHandlers } from './transport'

const onEnd = vi.fn()
const onRefused = vi.fn()
let handlers: StreamHandlers
const handle = { close: vi.fn(), restart: vi.fn() }
const open = vi.fn((_runId: string, given: StreamHandlers) => {
  handlers = given
  return handle
})
let live: LiveRuns

beforeEach(() => {
  vi.useFakeTimers()
  for (const mock of [onEnd, onRefused, handle.close, handle.restart, open]) mock.mockClear()
  live = new LiveRuns({ onEnd, onRefused }, open)
})
afterEach(() => void vi.useRealTimers())

const events = (...list: [number, RunEvent][]) => handlers.onEvents(list.map(([seq, event]) => ({ seq, event })))
const text = (at: number, delta: string): RunEvent => ({ type: 'text', at, text: delta })
const done: RunEvent = { type: 'done', state: 'completed', finish_reason: 'stop', usage: null, message: { id: 'm', text: 'ab' } as Message, error: null }

test('two watchers share one stream, which closes with the last of them', async () => {
  const first = live.watch('r')
  const second = live.watch('r')
  expect(open).toHaveBeenCalledTimes(1)
  first()
  first()
  await Promise.resolve()
  expect(handle.close).not.toHaveBeenCalled()
  second()
  await Promise.resolve()
  expect(handle.close).toHaveBeenCalledTimes(1)
  expect(live.store('r')).toBeNull()
})

test('a watcher that comes back at once keeps the stream', async () => {
  live.watch('r')()
  live.watch('r')
  await Promise.resolve()
  expect(open).toHaveBeenCalledTimes(1)
  expect(handle.close).not.toHaveBeenCalled()
})

test('many events of one frame reach subscribers once', async () => {
  live.watch('r')
  const seen = vi.fn()
  live.store('r')?.subscribe(seen)
  events([1, text(0, 'a')])
  events([2, text(1, 'b')])
  expect(seen).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(50)
  expect(seen).toHaveBeenCalledTimes(1)
  expect(live.store('r')?.get().view.text).toBe('ab')
})

test('the end comes at once, and the view stays for its watchers', () => {
  live.watch('r')
  events([1, text(0, 'a')], [2, done])
  expect(onEnd).toHaveBeenCalledTimes(1)
  expect(onEnd.mock.calls[0]?.slice(0, 2)).toEqual(['r', { id: 'm', text: 'ab' }])
  expect(live.store('r')?.get()).toMatchObject({ status: 'ended', view: { text: 'ab', ended: true } })
})

test('a hole is read again from the last good place, then from the start, then left to the stored message', () => {
  live.watch('r')
  events([1, text(0, 'a')], [3, text(5, 'x')])
  expect(handle.restart).toHaveBeenLastCalledWith(1)
  events([3, text(5, 'x')])
  expect(handle.restart).toHaveBeenLastCalledWith(0)
  events([3, text(5, 'x')])
  events([3, text(5, 'x')])
  expect(onEnd).toHaveBeenCalledTimes(1)
  expect(onEnd.mock.calls[0]?.[1]).toBeNull()
})

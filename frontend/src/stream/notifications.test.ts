import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openNotifications } from './notifications'

class FakeSocket extends EventTarget {
  static all: FakeSocket[] = []
  readyState = 0
  sent: string[] = []
  constructor(readonly url: string) {
    super()
    FakeSocket.all.push(this)
  }
  open(): void {
    this.readyState = 1
    this.dispatchEvent(new Event('open'))
  }
  receive(data: unknown): void {
    this.dispatchEvent(new MessageEvent('message', { data: typeof data === 'string' ? data : JSON.stringify(data) }))
  }
  fail(): void {
    this.readyState = 3
    this.dispatchEvent(new Event('close'))
  }
  send(text: string): void {
    this.sent.push(text)
  }
  close(): void {
    this.readyState = 3
  }
}

const onNotification = vi.fn()
const onSync = vi.fn()
let close: () => void

beforeEach(() => {
  vi.useFakeTimers()
  FakeSocket.all = []
  onNotification.mockClear()
  onSync.mockClear()
  close = openNotifications({ onNotification, onSync }, { WebSocket: FakeSocket as never, url: 'ws://x', random: () => 1 })
})
afterEach(() => {
  close()
  vi.useRealTimers()
})

const last = () => FakeSocket.all.at(-1) as FakeSocket

test('hands known notifications on and ignores the rest', () => {
  last().open()
  last().receive({ type: 'run', run: { id: 'r' } })
  last().receive({ type: 'weather' })
  last().receive('pong')
  last().receive('{broken')
  expect(onNotification).toHaveBeenCalledExactlyOnceWith({ type: 'run', run: { id: 'r' } })
  expect(onSync).not.toHaveBeenCalled()
})

test('comes back after a cut and syncs what was missed', async () => {
  last().open()
  last().fail()
  await vi.advanceTimersByTimeAsync(900)
  expect(FakeSocket.all).toHaveLength(2)
  last().open()
  expect(onSync).toHaveBeenCalledTimes(1)
})

test('polls while no socket can be had, and stops when it can', async () => {
  for (let attempt = 0; attempt < 3; attempt += 1) {
    last().fail()
    // oxlint-disable-next-line no-await-in-loop
    await vi.advanceTimersByTimeAsync(4000)
  }
  await vi.advanceTimersByTimeAsync(20_000)
  expect(onSync.mock.calls.length).toBeGreaterThanOrEqual(2)
  last().open()
  const count = onSync.mock.calls.length
  await vi.advanceTimersByTimeAsync(20_000)
  expect(onSync.mock.calls.length).toBe(count)
})

test('a socket that no longer answers is replaced', async () => {
  last().open()
  await vi.advanceTimersByTimeAsync(25_000 * 3 + 2000)
  expect(FakeSocket.all[0]?.sent).toEqual(['ping', 'ping'])
  expect(FakeSocket.all.length).toBeGreaterThan(1)
})

test('closes for good', async () => {
  last().open()
  close()
  last().fail()
  window.dispatchEvent(new Event('online'))
  await vi.advanceTimersByTimeAsync(60_000)
  expect(FakeSocket.all).toHaveLength(1)
})

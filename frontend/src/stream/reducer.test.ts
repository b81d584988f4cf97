import { expect, test } from 'vitest'
import type { RunEvent } from './events'
import { codePoints, initialView, reduce, reduceAll } from './reducer'

const text = (seq: number, at: number, delta: string) => ({ seq, event: { type: 'text', at, text: delta } as RunEvent })

test('a hole in the text is marked, shows nothing wrong, and heals when the missing part comes', () => {
  const holed = reduceAll(initialView, [text(1, 0, 'ab'), text(3, 4, 'ef'), text(4, 6, 'gh')])
  expect(holed).toMatchObject({ text: 'ab', seq: 1, gap: true })
  const healed = reduceAll(holed, [text(2, 2, 'cd'), text(3, 4, 'ef'), text(4, 6, 'gh')])
  expect(healed).toMatchObject({ text: 'abcdefgh', seq: 4, gap: false })
})

test('behind a hole other events wait, so that a resume brings them again', () => {
  const holed = reduceAll(initialView, [
    text(1, 0, 'ab'),
    text(3, 9, 'x'),
    { seq: 4, event: { type: 'citations', citations: [] } },
  ])
  expect(holed.seq).toBe(1)
})

test('the first text ends the wait in the queue even when its state event was merged away', () => {
  const queued = reduce(initialView, {
    seq: 1,
    event: { type: 'state', state: 'queued', attempt: 1, position: 4, estimated_wait_s: 8, model: null, replica: null },
  })
  expect(queued.position).toBe(4)
  expect(reduce(queued, text(2, 0, 'x'))).toMatchObject({ state: 'running', position: null, estimatedWaitS: null })
})

test('an event before the last one leaves the view itself unchanged', () => {
  const view = reduceAll(initialView, [text(1, 0, 'ab'), text(2, 2, 'c')])
  expect(reduce(view, text(2, 2, 'c'))).toBe(view)
})

test.each([
  ['', 0],
  ['abc', 3],
  ['👋🏽', 2],
  ['東京', 2],
  ['\ud83d', 1],
  ['x\udc4b', 2],
])('%j has %i code points', (value, count) => {
  expect(codePoints(value)).toBe(count)
})

test('files that are looked into are told until the next state', () => {
  const state = { type: 'state', state: 'running', attempt: 1, position: null, estimated_wait_s: null, model: 'm', replica: 'r' } as const
  const looking = reduce(initialView, { seq: 1, event: { ...state, looking_in: ['sales.csv'] } })
  expect(looking.lookingIn).toEqual(['sales.csv'])
  expect(reduce(looking, { seq: 2, event: state }).lookingIn).toEqual([])
})

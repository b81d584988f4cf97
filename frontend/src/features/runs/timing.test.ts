import { describe, expect, test } from 'vitest'
import { duration, phasesOf, tokensPerSecond } from './timing'

const at = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms).toISOString()
const run = { created_at: at(0), started_at: at(40), finished_at: at(5_540), waited_ms: 200, ttft_ms: 500, completion_tokens: 101 }

describe('phases', () => {
  test('add up to the time between asking and the end', () => {
    const phases = phasesOf(run)
    expect(phases.map((phase) => [phase.kind, phase.ms])).toEqual([
      ['accepted', 40],
      ['waiting', 200],
      ['reading', 300],
      ['writing', 5_000],
    ])
    expect(phases.reduce((sum, phase) => sum + phase.ms, 0)).toBe(5_540)
  })

  test('of a run that has not come so far are left out', () => {
    expect(phasesOf({ ...run, started_at: null })).toEqual([])
    expect(phasesOf({ ...run, waited_ms: null }).map((phase) => phase.kind)).toEqual(['accepted'])
    expect(phasesOf({ ...run, ttft_ms: null }).map((phase) => phase.kind)).toEqual(['accepted', 'waiting'])
    expect(phasesOf({ ...run, finished_at: null }).map((phase) => phase.kind)).toEqual(['accepted', 'waiting', 'reading'])
  })

  test('are never negative when clocks disagree', () => {
    expect(phasesOf({ ...run, created_at: at(90), finished_at: at(100) }).every((phase) => phase.ms >= 0)).toBe(true)
  })
})

test('speed is counted from the first token on, where there is more than one', () => {
  expect(tokensPerSecond(run)).toBe(20)
  expect(tokensPerSecond({ ...run, completion_tokens: 1 })).toBeNull()
  expect(tokensPerSecond({ ...run, finished_at: null })).toBeNull()
})

test.each([
  [0, '0 ms'],
  [999, '999 ms'],
  [1_500, '1.5 s'],
  [125_000, '2 min 5 s'],
])('%d ms is %s', (ms, words) => expect(duration(ms)).toBe(words))

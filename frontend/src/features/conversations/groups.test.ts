import { expect, test } from 'vitest'
import type { Conversation } from '@/shared/api'
import { groupConversations } from './groups'

const now = new Date(2026, 2, 30, 9, 0) // a Monday, the day after Europe's clocks went forward
let count = 0
function conversation(updated: Date, change: Partial<Conversation> = {}): Conversation {
  count += 1
  const updated_at = updated.toISOString()
  return { id: `c${count}`, title: `t${count}`, pinned: false, archived: false, deleted_at: null, head_message_id: null, created_at: updated_at, updated_at, active_run_id: null, ...change }
}

test('groups by the days of the reader, pinned first, newest first', () => {
  const groups = groupConversations(
    [
      conversation(new Date(2026, 2, 30, 0, 1)),
      conversation(new Date(2026, 2, 30, 8, 59)),
      conversation(new Date(2026, 2, 29, 23, 59)),
      conversation(new Date(2026, 2, 29, 0, 0)),
      conversation(new Date(2026, 2, 28, 12, 0)),
      conversation(new Date(2026, 2, 5, 12, 0)),
      conversation(new Date(2026, 0, 5, 12, 0)),
      conversation(new Date(2025, 11, 5, 12, 0)),
      conversation(new Date(2025, 5, 1, 12, 0), { pinned: true }),
      conversation(new Date(2026, 2, 30, 8, 0), { archived: true }),
      conversation(new Date(2026, 2, 30, 8, 0), { deleted_at: now.toISOString() }),
    ],
    now,
    'en',
  )
  expect(groups.map((group) => [group.label, group.items.length])).toEqual([
    ['Pinned', 1],
    ['Today', 2],
    ['Yesterday', 2],
    ['Previous 7 days', 1],
    ['Previous 30 days', 1],
    ['January', 1],
    ['December 2025', 1],
  ])
  const today = groups[1]?.items.map((item) => item.updated_at) ?? []
  expect(today).toEqual(today.toSorted().toReversed())
})

test('a clock of the server that is ahead still means today', () => {
  const groups = groupConversations([conversation(new Date(2026, 2, 31, 0, 30))], now, 'en')
  expect(groups[0]?.label).toBe('Today')
})

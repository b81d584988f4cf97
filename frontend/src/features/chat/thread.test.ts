import { describe, expect, test } from 'vitest'
import type { Message } from '@/shared/api'
import { leafOf, pathOf, siblingIndex, withMessages, type Thread } from './thread'

function message(id: string, parent: string | null, seq: number, change: Partial<Message> = {}): Message {
  return {
    id,
    conversation_id: 'c',
    parent_id: parent,
    seq,
    role: id.startsWith('q') ? 'user' : 'assistant',
    text: id,
    status: 'completed',
    run_id: null,
    model: '',
    files: [],
    citations: [],
    notices: [],
    tool_calls: [],
    error: null,
    created_at: '',
    finished_at: '',
    ...change,
  }
}

// q1 ─ a1 ─ q2 ─ a2        q2 was edited (q3), a1 was asked again (a4)
//    │    └ q3 ─ a3
//    └ a4
const tree: Thread = {
  headId: 'a3',
  messages: new Map(
    [
      message('q1', null, 1),
      message('a1', 'q1', 2),
      message('q2', 'a1', 3),
      message('a2', 'q2', 4),
      message('q3', 'a1', 5),
      message('a3', 'q3', 6),
      message('a4', 'q1', 7),
    ].map((item) => [item.id, item]),
  ),
}
const ids = (messages: Message[]) => messages.map((item) => item.id)

describe('a tree of messages', () => {
  test('shows the branch of its head', () => {
    expect(ids(pathOf(tree))).toEqual(['q1', 'a1', 'q3', 'a3'])
    expect(ids(pathOf({ ...tree, headId: 'a4' }))).toEqual(['q1', 'a4'])
  })

  test('falls back to the newest message when the head is not known', () => {
    expect(ids(pathOf({ ...tree, headId: 'gone' }))).toEqual(['q1', 'a4'])
    expect(pathOf({ messages: new Map(), headId: 'x' })).toEqual([])
  })

  test('survives a circle in bad data', () => {
    const circle = new Map([
      ['q1', message('q1', 'a1', 1)],
      ['a1', message('a1', 'q1', 2)],
    ])
    expect(ids(pathOf({ messages: circle, headId: 'a1' }))).toEqual(['q1', 'a1'])
  })

  test('counts versions of questions and answers apart, oldest first', () => {
    const index = siblingIndex(tree)
    expect(index.get('q3')).toEqual(['q2', 'q3'])
    expect(index.get('a1')).toEqual(['a1', 'a4'])
    expect(index.has('q1')).toBe(false)
  })

  test('goes to the newest end of a branch', () => {
    expect(leafOf(tree, 'a1')).toBe('a3')
    expect(leafOf(tree, 'q2')).toBe('a2')
    expect(leafOf(tree, 'a4')).toBe('a4')
  })
})

describe('new knowledge of messages', () => {
  test('replaces what was known', () => {
    expect(withMessages(tree, [message('a3', 'q3', 6, { text: 'more' })]).messages.get('a3')?.text).toBe('more')
  })

  test('keeps the objects of what did not change', () => {
    const copies = [...tree.messages.values()].map((item) => ({ ...item }))
    expect(withMessages(tree, copies)).toBe(tree)
    const changed = withMessages(tree, [...copies, message('q4', 'a4', 8)])
    expect(changed.messages.get('a1')).toBe(tree.messages.get('a1'))
    expect(changed.messages.size).toBe(8)
  })

  test('never lets a late answer say that a finished message still runs', () => {
    const late = message('a3', 'q3', 6, { status: 'running', text: 'part' })
    expect(withMessages(tree, [late])).toBe(tree)
  })
})

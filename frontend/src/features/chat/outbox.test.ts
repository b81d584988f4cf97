import { beforeEach, describe, expect, test, vi } from 'vitest'
import { ApiError, NetworkError, type Conversation, type Posted } from '@/shared/api'
import { clearOutbox, dequeue, enqueue, isLocalId, newLocalId, outbox } from './outbox'
import { Sender } from './sender'

type Call = { path: string; method: string; body: Record<string, unknown>; key: string | undefined }
type Reply = (call: Call) => unknown

function setUp(reply: Reply) {
  const calls: Call[] = []
  const onPosted = vi.fn()
  const onConversation = vi.fn()
  const send = async (path: string, options: { method?: string; body?: unknown; headers?: Record<string, string> } = {}) => {
    const call = {
      path,
      method: options.method ?? 'GET',
      body: options.body as Record<string, unknown>,
      key: options.headers?.['Idempotency-Key'],
    }
    calls.push(call)
    return reply(call)
  }
  const sender = new Sender({ onConversation, onPosted }, send as never)
  return { calls, onPosted, onConversation, sender }
}

const posted = { question: { id: 'q' }, answer: { id: 'a' }, run: { id: 'r' } } as unknown as Posted
const conversation = { id: 'c9' } as Conversation
const overloaded = (after: number | null) => new ApiError(503, 'overloaded', 'All places are taken.', null, after)
const add = (conversationId = 'c1') =>
  enqueue({ kind: 'post', conversationId, text: 'hello', parentId: null, files: [], answerId: null, model: 'auto' })
const settle = (ms = 0) => vi.advanceTimersByTimeAsync(ms)

beforeEach(() => {
  vi.useFakeTimers()
  clearOutbox()
  return () => vi.useRealTimers()
})

describe('the sender', () => {
  test('posts an entry with its client id and forgets it when it is acknowledged', async () => {
    const { calls, onPosted, sender } = setUp(() => posted)
    const entry = add()
    sender.flush()
    await settle()
    expect(calls).toHaveLength(1)
    expect(calls[0]).toMatchObject({
      path: '/api/conversations/c1/messages',
      key: entry.clientId,
      body: { client_id: entry.clientId, text: 'hello', parent_id: null, file_ids: [], model: 'auto' },
    })
    expect(onPosted).toHaveBeenCalledTimes(1)
    expect(outbox.get()).toEqual([])
  })

  test('asks again with the same id after a lost answer', async () => {
    let lost = 2
    const { calls, onPosted, sender } = setUp(() => {
      lost -= 1
      if (lost >= 0) throw new NetworkError('cut')
      return posted
    })
    add()
    sender.flush()
    await settle(30_000)
    expect(calls.map((call) => call.key)).toEqual([calls[0]?.key, calls[0]?.key, calls[0]?.key])
    expect(onPosted).toHaveBeenCalledTimes(1)
  })

  test('an entry that was waiting is sent after a reload, still under its id', async () => {
    const first = setUp(() => {
      throw new NetworkError('down')
    })
    const entry = add()
    first.sender.flush()
    await settle()
    expect(JSON.parse(localStorage.getItem('parley.outbox') ?? '[]')).toHaveLength(1)
    const second = setUp(() => posted)
    second.sender.flush()
    await settle()
    expect(second.calls[0]?.key).toBe(entry.clientId)
  })

  test('makes a new conversation once, and remembers its id before it posts', async () => {
    let cut = true
    const { calls, onConversation, onPosted, sender } = setUp((call) => {
      if (call.path === '/api/conversations') return conversation
      if (cut) {
        cut = false
        throw new NetworkError('cut')
      }
      return posted
    })
    const localId = newLocalId()
    add(localId)
    sender.flush()
    await settle(30_000)
    expect(calls.map((call) => call.path)).toEqual(['/api/conversations', '/api/conversations/c9/messages', '/api/conversations/c9/messages'])
    expect(onConversation).toHaveBeenCalledExactlyOnceWith(localId, conversation)
    expect(onPosted.mock.calls[0]?.[0]).toMatchObject({ conversationId: 'c9' })
    expect(isLocalId('c9')).toBe(false)
  })

  test('keeps a refusal with its reason and tries again when the server said', async () => {
    let times = 0
    const { calls, onPosted, sender } = setUp(() => {
      times += 1
      if (times === 1) throw overloaded(7)
      return posted
    })
    add()
    sender.flush()
    await settle()
    expect(outbox.get()[0]?.refusal).toMatchObject({ code: 'overloaded', message: 'All places are taken.' })
    await settle(6_900)
    expect(calls).toHaveLength(1)
    await settle(500)
    expect(calls).toHaveLength(2)
    expect(onPosted).toHaveBeenCalledTimes(1)
  })

  test('keeps the model that the server offers instead', async () => {
    const { sender } = setUp(() => {
      throw new ApiError(503, 'overloaded', 'Large is busy. Small has room.', null, 7, { alternative: 'small' })
    })
    add()
    sender.flush()
    await settle()
    expect(outbox.get()[0]?.refusal?.alternative).toBe('small')
  })

  test('stops asking an overloaded server after five refusals, until a person asks', async () => {
    const { calls, sender } = setUp(() => {
      throw overloaded(1)
    })
    const entry = add()
    sender.flush()
    await settle(120_000)
    expect(calls).toHaveLength(6)
    expect(outbox.get()[0]?.refusal?.retryAt).toBeNull()
    sender.retry(entry.clientId)
    await settle()
    expect(calls).toHaveLength(7)
  })

  test('leaves to the person what they must decide, and sends the rest', async () => {
    const { sender, onPosted } = setUp((call) => {
      if (call.path.includes('c1')) throw new ApiError(413, 'too_large', 'The message is too long.')
      return posted
    })
    const stuck = add('c1')
    add('c2')
    sender.flush()
    await settle(60_000)
    expect(onPosted).toHaveBeenCalledTimes(1)
    expect(outbox.get().map((entry) => entry.clientId)).toEqual([stuck.clientId])
    expect(outbox.get()[0]?.refusal).toMatchObject({ code: 'too_large', retryAt: null })
  })

  test('waits while its first try is still being worked on', async () => {
    let times = 0
    const { onPosted, sender } = setUp(() => {
      times += 1
      if (times < 9) throw new ApiError(409, 'idempotency_in_flight', 'In flight.')
      return posted
    })
    add()
    sender.flush()
    await settle(20_000)
    expect(onPosted).toHaveBeenCalledTimes(1)
  })

  test('a gateway of a restarting server is no refusal', async () => {
    let times = 0
    const { onPosted, sender } = setUp(() => {
      times += 1
      if (times < 3) throw new ApiError(502, 'http_502', 'Bad Gateway')
      return posted
    })
    add()
    sender.flush()
    await settle(20_000)
    expect(onPosted).toHaveBeenCalledTimes(1)
  })

  test('does not post what was taken back while its conversation was made', async () => {
    const { calls, sender } = setUp((call) => {
      if (call.path === '/api/conversations') {
        for (const entry of outbox.get()) dequeue(entry.clientId)
        return conversation
      }
      return posted
    })
    add(newLocalId())
    sender.flush()
    await settle(5_000)
    expect(calls.map((call) => call.path)).toEqual(['/api/conversations'])
  })
})

describe('the outbox', () => {
  test('drops what an older version or another program stored', async () => {
    localStorage.setItem('parley.outbox', JSON.stringify([{ clientId: 1 }, null, 'x']))
    add()
    expect(outbox.get()).toHaveLength(1)
  })

  test('holds a message in memory when storage is full', () => {
    const full = vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
      throw new DOMException('full', 'QuotaExceededError')
    })
    add('c1')
    add('c2')
    expect(outbox.get()).toHaveLength(2)
    full.mockRestore()
  })
})

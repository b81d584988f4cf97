/** Mock of conversations and messages. */
import type { Conversation, Message } from '../../src/shared/api/types.ts'
import { created, empty, ok, Problem, type Answer, type Request } from './http.ts'
import { startRun } from './runs.ts'
import { addConversation, addMessage, notify, now, type State } from './state.ts'

const missing = () => new Problem(404, 'not_found', 'This conversation does not exist, or it was deleted.')

export function handleConversations(state: State, request: Request): Answer | undefined {
  const [, api, kind, conversationId, part, messageId] = request.path.split('/')
  if (api !== 'api' || kind !== 'conversations') return undefined
  if (!conversationId) return request.method === 'POST' ? create(state, request) : list(state, request.query)
  const conversation = state.conversations.get(conversationId)
  if (!conversation) throw missing()
  if (part === 'messages' && messageId) return regenerate(state, conversation, messageId, request)
  if (part === 'messages') return request.method === 'POST' ? post(state, conversation, request) : messages(state, conversation)
  if (part === 'branch') return branch(state, conversation, String(request.json['message_id']))
  if (part === 'restore') return ok(change(state, conversation, { deleted_at: null }))
  if (request.method === 'DELETE') {
    change(state, conversation, { deleted_at: now() })
    return empty
  }
  if (request.method === 'PATCH') return ok(change(state, conversation, request.json))
  return ok(conversation)
}

export function change(state: State, conversation: Conversation, fields: Partial<Conversation>): Conversation {
  Object.assign(conversation, fields)
  notify(state, { type: 'conversation', conversation })
  return conversation
}

function list(state: State, query: URLSearchParams): Answer {
  const q = (query.get('q') ?? '').toLowerCase()
  const archived = query.get('archived') === 'true'
  const deleted = query.get('deleted') === 'true'
  const all = [...state.conversations.values()]
    .filter((item) => (item.deleted_at !== null) === deleted && (deleted || item.archived === archived))
    .filter((item) => item.title.toLowerCase().includes(q))
    .toSorted((a, b) => b.updated_at.localeCompare(a.updated_at))
  const from = Number(query.get('cursor') ?? 0)
  const limit = Number(query.get('limit') ?? 50)
  return ok({ results: all.slice(from, from + limit), next: from + limit < all.length ? String(from + limit) : null })
}

function create(state: State, { json }: Request): Answer {
  return created(addConversation(state, String(json['title'] ?? '')))
}

function messages(state: State, conversation: Conversation): Answer {
  return ok({ results: state.messages.get(conversation.id), next: null })
}

function post(state: State, conversation: Conversation, { json }: Request): Answer {
  const clientId = String(json['client_id'])
  const first = state.posted.get(clientId)
  if (first) return ok(first)
  const text = String(json['text'])
  if (text.includes('overload')) {
    throw new Problem(503, 'overloaded', 'All places are taken. Try again in a few seconds.', { retry_after_s: 6 })
  }
  const ids = (json['file_ids'] ?? []) as string[]
  const question = addMessage(state, conversation.id, {
    text,
    parent_id: (json['parent_id'] as string | null) ?? null,
    files: ids.flatMap((fileId) => {
      const file = state.files.get(fileId)?.file
      return file ? [{ id: file.id, name: file.name, page_count: file.page_count, state: file.state }] : []
    }),
  })
  const { answer, run } = begin(state, conversation, question, String(json['model'] ?? 'auto'))
  const body = { question, answer: { ...answer }, run: { ...run } }
  state.posted.set(clientId, body)
  return created(body)
}

function regenerate(state: State, conversation: Conversation, answerId: string, { json }: Request): Answer {
  const all = state.messages.get(conversation.id) ?? []
  const old = all.find((message) => message.id === answerId)
  const question = all.find((message) => message.id === old?.parent_id)
  if (!question) throw missing()
  const first = state.posted.get(String(json['client_id']))
  if (first) return ok(first)
  const { answer, run } = begin(state, conversation, question, String(json['model'] ?? 'auto'))
  const body = { answer: { ...answer }, run: { ...run } }
  state.posted.set(String(json['client_id']), body)
  return created(body)
}

function begin(state: State, conversation: Conversation, question: Message, model: string) {
  const answer = addMessage(state, conversation.id, {
    role: 'assistant',
    parent_id: question.id,
    status: 'queued',
    finished_at: null,
  })
  const run = startRun(state, conversation, question, answer, model)
  answer.run_id = run.id
  change(state, conversation, { head_message_id: answer.id, active_run_id: run.id, updated_at: now() })
  return { answer, run }
}

function branch(state: State, conversation: Conversation, messageId: string): Answer {
  const copy = addConversation(state, `${conversation.title} (branch)`)
  const all = new Map((state.messages.get(conversation.id) ?? []).map((message) => [message.id, message]))
  const path: Message[] = []
  for (let at = all.get(messageId); at; at = at.parent_id ? all.get(at.parent_id) : undefined) path.unshift(at)
  for (const message of path) {
    const { id: _id, seq: _seq, ...rest } = message
    copy.head_message_id = addMessage(state, copy.id, { ...rest, conversation_id: copy.id, parent_id: copy.head_message_id }).id
  }
  notify(state, { type: 'conversation', conversation: copy })
  return created(copy)
}

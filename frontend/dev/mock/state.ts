/** What the mock server holds, and its first contents. */
import type {
  ApiKey,
  Conversation,
  FileRecord,
  Message,
  Model,
  Notification,
  PageRecord,
  Run,
} from '../../src/shared/api/types.ts'
import { ANSWERS, LONG_TALK } from './content.ts'

export interface RunLog {
  run: Run
  entries: { seq: number; data: unknown }[]
  readers: Set<() => void>
  cancel: () => void
}

export interface MockFile {
  file: FileRecord
  pages: PageRecord[]
  parts: Map<number, { etag: string; size: number }>
  texts: string[]
}

export interface State {
  scene: Set<string>
  signedIn: boolean
  setupNeeded: boolean
  name: string
  startedAt: number
  conversations: Map<string, Conversation>
  messages: Map<string, Message[]>
  runs: Map<string, RunLog>
  files: Map<string, MockFile>
  keys: Map<string, ApiKey>
  /** client_id -> the first answer. */
  posted: Map<string, unknown>
  models: Model[]
  sockets: Set<(text: string) => unknown>
}

let counter = 0
export function id(): string {
  counter += 1
  return `0198c0de-0000-7000-8000-${counter.toString(16).padStart(12, '0')}`
}

export const now = (agoS = 0): string => new Date(Date.now() - agoS * 1000).toISOString()

export function notify(state: State, notification: Notification): void {
  for (const send of state.sockets) send(JSON.stringify(notification))
}

export function createState(scene: Set<string>): State {
  const loading = scene.has('loading')
  const state: State = {
    scene,
    signedIn: !scene.has('signed-out') && !scene.has('setup'),
    setupNeeded: scene.has('setup'),
    name: 'Ada Lovelace',
    startedAt: Date.now(),
    conversations: new Map(),
    messages: new Map(),
    runs: new Map(),
    files: new Map(),
    keys: new Map(),
    posted: new Map(),
    sockets: new Set(),
    models: [
      {
        id: 'smollm2-135m',
        name: 'SmolLM2 135M',
        state: loading ? 'loading' : 'ready',
        eta_s: loading ? 45 : null,
        phase: loading ? 'loading' : 'ready',
        demo: true,
        context_length: 8192,
        note: 'A small demonstration model that runs on any processor.',
        replicas: { ready: loading ? 0 : 1, total: 1 },
      },
      {
        id: 'qwen3-8b',
        name: 'Qwen3 8B',
        state: 'unavailable',
        eta_s: null,
        phase: '',
        demo: false,
        context_length: 32768,
        note: 'Needs a GPU. Add it to the manifest.',
        replicas: { ready: 0, total: 1 },
      },
    ],
  }
  if (!scene.has('fresh')) seed(state)
  if (scene.has('loading')) setTimeout(() => modelReady(state), 45_000)
  return state
}

function modelReady(state: State): void {
  const model = state.models[0]
  if (!model) return
  state.models[0] = { ...model, state: 'ready', eta_s: null, replicas: { ready: 1, total: 1 } }
  notify(state, { type: 'model', model: state.models[0] })
}

export function addConversation(state: State, title: string, agoS = 0, change: Partial<Conversation> = {}): Conversation {
  const conversation: Conversation = {
    id: id(),
    title,
    pinned: false,
    archived: false,
    deleted_at: null,
    head_message_id: null,
    created_at: now(agoS),
    updated_at: now(agoS),
    active_run_id: null,
    ...change,
  }
  state.conversations.set(conversation.id, conversation)
  state.messages.set(conversation.id, [])
  return conversation
}

export function addMessage(state: State, conversationId: string, change: Partial<Message>): Message {
  const all = state.messages.get(conversationId) ?? []
  const message: Message = {
    id: id(),
    conversation_id: conversationId,
    parent_id: null,
    seq: all.length + 1,
    role: 'user',
    text: '',
    status: 'completed',
    run_id: null,
    model: '',
    files: [],
    citations: [],
    notices: [],
    tool_calls: [],
    error: null,
    created_at: now(),
    finished_at: now(),
    ...change,
  }
  all.push(message)
  state.messages.set(conversationId, all)
  return message
}

const HOUR = 3600
const TITLES: [string, number, Partial<Conversation>?][] = [
  ['Trip to Lisbon in October', 2 * HOUR, { pinned: true }],
  ['Explain eventual consistency', 3 * HOUR],
  ['Fixing a flaky Postgres test', 5 * HOUR],
  ['Sourdough timing at 18 °C', 27 * HOUR],
  ['Letter to the housing association about the courtyard lights', 30 * HOUR],
  ['مقدمة في الجبر الخطي', 3 * 24 * HOUR],
  ['Reading list on urban trees', 4 * 24 * HOUR],
  ['SQL window functions', 12 * 24 * HOUR],
  ['Names for a rescue cat', 20 * 24 * HOUR],
  ['Tax questions for freelancers', 75 * 24 * HOUR],
  ['Old draft', 80 * 24 * HOUR, { archived: true }],
]

function seed(state: State): void {
  for (const [title, ago, change] of TITLES) {
    const conversation = addConversation(state, title, ago, change)
    talk(state, conversation, title)
  }
  if (!state.scene.has('many')) return
  const long = addConversation(state, 'A very long conversation', HOUR)
  for (let turn = 0; turn < 500; turn += 1) {
    const text = LONG_TALK[turn % LONG_TALK.length] ?? ''
    exchange(state, long, `Question ${turn + 1}: ${text.slice(0, 60)}?`, text)
  }
  for (let index = 0; index < 150; index += 1) addConversation(state, `Earlier conversation ${index + 1}`, (90 + index) * 24 * HOUR)
}

function talk(state: State, conversation: Conversation, title: string): void {
  exchange(state, conversation, `${title}: where should I start?`, ANSWERS.markdown)
  const question = addMessage(state, conversation.id, {
    parent_id: conversation.head_message_id,
    text: 'Can you show that as a table, and as code?',
  })
  addMessage(state, conversation.id, answerOf(question, ANSWERS.short))
  const second = addMessage(state, conversation.id, answerOf(question, ANSWERS.code))
  conversation.head_message_id = second.id
}

function exchange(state: State, conversation: Conversation, asked: string, text: string): void {
  const question = addMessage(state, conversation.id, { parent_id: conversation.head_message_id, text: asked })
  conversation.head_message_id = addMessage(state, conversation.id, answerOf(question, text)).id
}

function answerOf(question: Message, text: string): Partial<Message> {
  return { parent_id: question.id, role: 'assistant', text, run_id: id(), model: 'smollm2-135m' }
}

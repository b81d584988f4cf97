/** The signed-in page over a scripted server: what a person does, and what they then see. */
import { cleanup, render, screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { clearOutbox, forgetThreads } from '@/features/chat'
import { forgetConversations } from '@/features/conversations'
import { clearResources, type Conversation, type Message } from '@/shared/api'
import { navigate } from '@/shared/hooks'
import { App } from './App'
import { sessionStore } from './session'

type Handler = (request: { path: string; method: string; body: Record<string, unknown> }) => unknown
let routes: [RegExp, Handler][] = []
let calls: string[] = []

const at = '2026-03-01T10:00:00Z'
const site = { name: 'Parley', version: '1', setup_needed: false, signup: 'first', needs_https: false }
const me = { user: { id: 'u', email: 'a@b.c', name: 'Ada', is_operator: true }, organization: { id: 'o', name: 'P', role: 'owner', tier: 'free' } }
const model = { id: 'm', name: 'Small', state: 'ready', eta_s: null, phase: '', demo: true, context_length: 1, note: '', replicas: { ready: 1, total: 1 } }
const talk = (change: Partial<Conversation> = {}): Conversation => ({
  id: 'c1', title: 'Roofs', pinned: false, archived: false, deleted_at: null, head_message_id: null, created_at: at, updated_at: at, active_run_id: null, ...change,
})
const message = (id: string, change: Partial<Message>): Message => ({
  id, conversation_id: 'c1', parent_id: null, seq: 1, role: 'user', text: '', status: 'completed', run_id: null, model: '', files: [], citations: [], notices: [], tool_calls: [], error: null, created_at: at, finished_at: at, ...change,
})
const question = message('q1', { text: 'What carries the roof?' })
const answer = message('a1', { role: 'assistant', parent_id: 'q1', seq: 2, text: 'Cedar beams.', model: 'm' })

function problem(status: number, code: string, detail: string): Response {
  return new Response(JSON.stringify({ status, code, detail }), { status })
}

async function fakeFetch(input: string, init: RequestInit = {}): Promise<Response> {
  const path = input.replace(/\?.*/, '')
  const method = init.method ?? 'GET'
  calls.push(`${method} ${path}`)
  const route = routes.find(([pattern]) => pattern.test(`${method} ${path}`))
  if (!route) return problem(404, 'not_found', 'Not there.')
  const body = typeof init.body === 'string' ? (JSON.parse(init.body) as Record<string, unknown>) : {}
  const result = await route[1]({ path, method, body })
  return result instanceof Response ? result : new Response(JSON.stringify(result))
}

/** A stream that the test writes to. */
function stream() {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const body = new ReadableStream<Uint8Array>({ start: (given) => void (controller = given) })
  let seq = 0
  return {
    response: new Response(body),
    send(event: object) {
      seq += 1
      controller?.enqueue(new TextEncoder().encode(`id: ${seq}\ndata: ${JSON.stringify(event)}\n\n`))
    },
  }
}

class SilentSocket extends EventTarget {
  readyState = 0
  send(): void {}
  close(): void {}
}

beforeEach(() => {
  calls = []
  routes = [
    [/^GET \/api\/site$/, () => site],
    [/^GET \/api\/me$/, () => me],
    [/^GET \/api\/models$/, () => ({ results: [model], default: 'auto' })],
    [/^GET \/api\/conversations$/, () => ({ results: [talk({ head_message_id: 'a1' })], next: null })],
    [/^GET \/api\/conversations\/c1$/, () => talk({ head_message_id: 'a1' })],
    [/^GET \/api\/conversations\/c1\/messages$/, () => ({ results: [question, answer], next: null })],
  ]
  vi.stubGlobal('fetch', fakeFetch)
  vi.stubGlobal('WebSocket', SilentSocket)
  sessionStore.set({ state: 'starting', site: null, me: null, expired: false })
  navigate('/')
})

afterEach(() => {
  cleanup()
  clearOutbox()
  forgetThreads()
  forgetConversations()
  clearResources()
  vi.unstubAllGlobals()
})

const override = (pattern: RegExp, handler: Handler) => routes.unshift([pattern, handler])
const composer = () => screen.findByRole('textbox', { name: 'Your question' })

describe('the page', () => {
  test('asks a new question: opens the conversation, streams the answer, keeps the result', async () => {
    const live = stream()
    const run = { id: 'r1', conversation_id: 'c2', question_id: 'q2', answer_id: 'a2', state: 'queued', finished_at: null }
    const asked = message('q2', { conversation_id: 'c2', text: 'And the floor?' })
    const running = message('a2', { conversation_id: 'c2', role: 'assistant', parent_id: 'q2', seq: 2, status: 'queued', run_id: 'r1', finished_at: null })
    let posts = 0
    override(/^POST \/api\/conversations$/, () => talk({ id: 'c2', title: '' }))
    override(/^GET \/api\/conversations\/c2\/messages$/, () => ({ results: [], next: null }))
    override(/^POST \/api\/conversations\/c2\/messages$/, () => {
      posts += 1
      return { question: asked, answer: running, run }
    })
    override(/^GET \/api\/runs\/r1\/events$/, () => live.response)
    const user = userEvent.setup()
    render(<App />)
    await user.type(await composer(), 'And the floor?{Enter}')

    expect(await screen.findByText('And the floor?')).toBeTruthy()
    await waitFor(() => expect(location.pathname).toBe('/c/c2'))
    await waitFor(() => expect(calls).toContain('GET /api/runs/r1/events'))
    expect(await screen.findByRole('button', { name: 'Stop the answer' })).toBeTruthy()
    live.send({ type: 'state', state: 'queued', attempt: 1, position: 2, estimated_wait_s: 12, model: 'm', replica: null })
    expect(await screen.findByText(/Place 2 in the queue, about 10 s/)).toBeTruthy()
    live.send({ type: 'text', at: 0, text: 'Oak, ' })
    expect(await screen.findByText(/Oak,/)).toBeTruthy()
    live.send({ type: 'text', at: 5, text: 'relaid twice.' })
    live.send({
      type: 'done', state: 'completed', finish_reason: 'stop', usage: null, error: null,
      message: { ...running, text: 'Oak, relaid twice.', status: 'completed', model: 'm', finished_at: at },
    })
    const article = await screen.findByRole('article', { name: 'Answer' })
    await waitFor(() => expect(within(article).getByText('Oak, relaid twice.')).toBeTruthy())
    expect(await screen.findByRole('button', { name: 'Send' })).toBeTruthy()
    expect(posts).toBe(1)
    expect(screen.getAllByRole('article')).toHaveLength(2)
    expect(JSON.parse(localStorage.getItem('parley.outbox') ?? '[]')).toEqual([])
  })

  test('opens a conversation whose answer is still being written and attaches to it', async () => {
    const live = stream()
    const half = { ...answer, status: 'running' as const, run_id: 'r7', text: 'Cedar', finished_at: null }
    override(/^GET \/api\/conversations\/c1\/messages$/, () => ({ results: [question, half], next: null }))
    override(/^GET \/api\/runs\/r7\/events$/, () => live.response)
    navigate('/c/c1')
    render(<App />)
    expect(await screen.findByText('Cedar')).toBeTruthy()
    live.send({ type: 'snapshot', text: 'Cedar beams carry' })
    expect(await screen.findByText('Cedar beams carry')).toBeTruthy()
  })

  test('an answer says what was amiss while it was written after a reload too', async () => {
    const files = [
      { file_id: 'f', file_name: 'survey.pdf', pages_pending: [7, 8, 9], pages_failed: [2] },
      { file_id: 'g', file_name: 'letters.pdf', pages_pending: [], pages_failed: [] },
      { file_id: 'h', file_name: 'secret.pdf', pages_pending: [], pages_failed: [], state: 'needs_password' as const, reason: '' },
      { file_id: 'i', file_name: 'broken.pdf', pages_pending: [], pages_failed: [], state: 'failed' as const, reason: 'The file is damaged.' },
    ]
    const told = message('a1', {
      ...answer, run_id: 'r1',
      notices: [
        { kind: 'keyword_only' },
        { kind: 'keyword_away' },
        { kind: 'unready', files },
        { kind: 'left_out', left_out: [...'abcdefg'].map((name) => ({ file_id: name, file_name: name, sentences: [`Only the beginning of ${name}.csv was read.`] })) },
        { kind: 'survey', survey: { way: 'spread', words: [], files: [{ file_id: 'f', file_name: 'survey.pdf', page_count: 120, pages: [1, 2], summarised: [], found: [] }] } },
        { kind: 'reconstructed', at: 5, attempt: 2, replica: 'm/1' },
        { kind: 'escalated', from_model: 'small', to_model: 'large', why: 'its answer was empty' },
      ],
    })
    override(/^GET \/api\/conversations\/c1\/messages$/, () => ({ results: [question, told], next: null }))
    navigate('/c/c1')
    render(<App />)
    expect(await screen.findByText(/continued on another replica/)).toBeTruthy()
    expect(screen.getByText('Files were searched by keywords only. Search by meaning is not ready yet.')).toBeTruthy()
    expect(screen.getByText('Files were searched by keywords only. What searches by meaning does not answer at present.')).toBeTruthy()
    expect(screen.getByText(/^Only the beginning of a.csv was read. .*e.csv was read. 2 more files were not read whole.$/)).toBeTruthy()
    expect(screen.getByText('This covers 2 of 120 pages of survey.pdf.')).toBeTruthy()
    expect(screen.getByText('small did not manage (its answer was empty). large answered instead.')).toBeTruthy()
    expect(screen.getByText('Pages 7–9 of survey.pdf were not read yet; page 2 of survey.pdf could not be read. letters.pdf was not read yet. secret.pdf was not opened: it needs its password. broken.pdf could not be read: The file is damaged.')).toBeTruthy()
    expect(calls).not.toContain('GET /api/runs/r1/events')
  })

  test('a passage that an answer without marks was matched to says what it does not hold', async () => {
    const cited = { n: 1, passage_id: 'p', file_id: 'f', file_name: 'council.pdf', page: 3, heading: '', text: '', boxes: [], source: 'digital' as const, attributed: true }
    const matched = message('a1', { ...answer, citations: [{ ...cited, unsupported: ['Maria Lopez'] }, { ...cited, n: 2, page: 4, unsupported: [] }] })
    override(/^GET \/api\/conversations\/c1\/messages$/, () => ({ results: [question, matched], next: null }))
    navigate('/c/c1')
    render(<App />)
    const sources = await screen.findByRole('group', { name: 'Sources' })
    expect(within(sources).getByText('Matching passages (the answer names no source itself)')).toBeTruthy()
    const [doubted, sure] = within(sources).getAllByRole('listitem')
    expect(doubted?.textContent).toContain('Not found in this source: Maria Lopez')
    expect(sure?.textContent).not.toContain('Not found')
  })

  test.each([
    [null, 'The answer reached its length limit and ends here.'],
    [{ code: 'replica_failed', message: 'The model stopped answering. What it wrote is kept; try again.', retry_after_s: 2 }, 'The model stopped answering. What it wrote is kept; try again.'],
  ])('an answer that is not complete says why: %j', async (error, wanted) => {
    const cut = message('a1', { ...answer, status: 'incomplete', error })
    override(/^GET \/api\/conversations\/c1\/messages$/, () => ({ results: [question, cut], next: null }))
    navigate('/c/c1')
    render(<App />)
    expect(await screen.findByText(wanted)).toBeTruthy()
    expect(screen.queryByText(/length limit/) === null).toBe(error !== null)
    expect(screen.queryByRole('button', { name: 'Try again' }) !== null).toBe(error !== null)
  })

  test('opened by its address, a conversation shows the branch that the server keeps', async () => {
    const other = { ...answer, id: 'a2', seq: 3, text: 'Steel beams.' }
    override(/^GET \/api\/conversations$/, () => problem(500, 'internal', 'Broken.'))
    override(/^GET \/api\/conversations\/c1\/messages$/, () => ({ results: [question, answer, other], next: null }))
    navigate('/c/c1')
    render(<App />)
    expect(await screen.findByText('Cedar beams.')).toBeTruthy()
    expect(screen.getByText('1/2')).toBeTruthy()
  })

  test('shows why a message was refused, and gives it back for editing', async () => {
    override(/^POST \/api\/conversations\/c1\/messages$/, () => problem(413, 'too_large', 'The message is longer than this server takes.'))
    const user = userEvent.setup()
    navigate('/c/c1')
    render(<App />)
    await screen.findByText('Cedar beams.')
    await user.type(await composer(), 'much too long{Enter}')
    expect(await screen.findByText(/longer than this server takes/)).toBeTruthy()
    await user.click(screen.getByRole('button', { name: 'Edit' }))
    expect(((await composer()) as HTMLTextAreaElement).value).toBe('much too long')
    expect(screen.queryByText(/longer than this server takes/)).toBeNull()
  })

  test('keeps a draft for each conversation', async () => {
    const user = userEvent.setup()
    render(<App />)
    await user.type(await composer(), 'half a thought')
    await user.click(await screen.findByRole('link', { name: 'Roofs' }))
    await screen.findByText('Cedar beams.')
    expect(((await composer()) as HTMLTextAreaElement).value).toBe('')
    await user.click(screen.getByRole('link', { name: /New conversation/ }))
    expect(((await composer()) as HTMLTextAreaElement).value).toBe('half a thought')
  })

  test('edits the last question as a new branch with the arrow key', async () => {
    let posted: Record<string, unknown> = {}
    override(/^POST \/api\/conversations\/c1\/messages$/, ({ body }) => {
      posted = body
      return {
        question: message('q3', { text: body['text'] as string, seq: 3 }),
        answer: message('a3', { role: 'assistant', parent_id: 'q3', seq: 4, text: 'Steel.' }),
        run: { id: 'r3', finished_at: at },
      }
    })
    const user = userEvent.setup()
    navigate('/c/c1')
    render(<App />)
    await screen.findByText('Cedar beams.')
    await user.type(await composer(), '{ArrowUp}')
    const editor = await screen.findByRole('textbox', { name: 'Edit your question' })
    await user.clear(editor)
    await user.type(editor, 'What carries the tower?{Control>}{Enter}{/Control}')
    expect(await screen.findByText('Steel.')).toBeTruthy()
    expect(posted).toMatchObject({ text: 'What carries the tower?', parent_id: null })
    expect(screen.queryByText('Cedar beams.')).toBeNull()
    expect(screen.getByText('2/2')).toBeTruthy()
    override(/^PATCH \/api\/conversations\/c1$/, () => talk({ head_message_id: 'a1' }))
    await user.click(screen.getByRole('button', { name: 'Previous version of the question' }))
    expect(await screen.findByText('Cedar beams.')).toBeTruthy()
  })

  test('deletes with a way back', async () => {
    override(/^DELETE \/api\/conversations\/c1$/, () => new Response(null, { status: 204 }))
    override(/^POST \/api\/conversations\/c1\/restore$/, () => talk())
    const user = userEvent.setup()
    render(<App />)
    await user.click(await screen.findByRole('button', { name: 'Actions for Roofs' }))
    await user.click(await screen.findByRole('menuitem', { name: 'Delete' }))
    expect(screen.queryByRole('link', { name: 'Roofs' })).toBeNull()
    await user.click(await screen.findByRole('button', { name: 'Undo' }))
    expect(await screen.findByRole('link', { name: 'Roofs' })).toBeTruthy()
    expect(calls.filter((call) => call.startsWith('DELETE') || call.endsWith('/restore'))).toEqual([
      'DELETE /api/conversations/c1',
      'POST /api/conversations/c1/restore',
    ])
  })

  test('says that a model is loading and for how long, and that the demo model is one', async () => {
    override(/^GET \/api\/models$/, () => ({ results: [{ ...model, state: 'loading', eta_s: 42, replicas: { ready: 0, total: 1 } }], default: 'auto' }))
    render(<App />)
    expect(await screen.findByText('Small is loading.')).toBeTruthy()
    expect(screen.getByText(/Ready in about 40 s/)).toBeTruthy()
    cleanup()
    clearResources()
    override(/^GET \/api\/models$/, () => ({ results: [model], default: 'auto' }))
    render(<App />)
    expect(await screen.findByText(/demonstration model/)).toBeTruthy()
  })

  test('a conversation that is not there says so', async () => {
    override(/^GET \/api\/conversations\/nope/, () => problem(404, 'not_found', 'Not there.'))
    navigate('/c/nope')
    render(<App />)
    expect(await screen.findByRole('heading', { name: 'This conversation is not here' })).toBeTruthy()
  })

  test('tells a server that does not answer from a person who is signed out', async () => {
    override(/^GET \/api\/site$/, () => {
      throw new TypeError('refused')
    })
    render(<App />)
    expect(await screen.findByRole('heading', { name: 'Parley does not answer' })).toBeTruthy()
    routes.shift()
    override(/^GET \/api\/me$/, () => problem(401, 'not_authenticated', 'Sign in.'))
    await userEvent.setup().click(screen.getByRole('button', { name: 'Try now' }))
    expect(await screen.findByRole('heading', { name: 'Sign in' })).toBeTruthy()
  })

  test('a session that ends under an open page asks for the password and keeps the draft', async () => {
    const user = userEvent.setup()
    render(<App />)
    await user.type(await composer(), 'precious words')
    override(/^POST \/api\/conversations$/, () => problem(401, 'not_authenticated', 'Sign in.'))
    await user.keyboard('{Enter}')
    expect(await screen.findByRole('heading', { name: 'Sign in again', level: 3 })).toBeTruthy()
    expect(screen.getByText('precious words')).toBeTruthy()
  })
})

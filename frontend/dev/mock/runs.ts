/** Mock of runs: a scripted answer written into an event log, and SSE over it. */
import type { Conversation, Message, Passage, Run } from '../../src/shared/api/types.ts'
import { ANSWERS } from './content.ts'
import { change } from './conversations.ts'
import { ok, Problem, type Answer, type Request } from './http.ts'
import { id, notify, now, type RunLog, type State } from './state.ts'

export function handleRuns(state: State, request: Request): Answer | null | undefined {
  const [, api, kind, runId, part] = request.path.split('/')
  if (api !== 'api' || kind !== 'runs') return undefined
  const log = state.runs.get(runId ?? '')
  if (!log) throw new Problem(404, 'not_found', 'This run does not exist.')
  if (part === 'cancel') log.cancel()
  if (part === 'events') return events(log, request)
  return ok(log.run)
}

function events(log: RunLog, { query, headers, response, raw }: Request): null {
  let after = Math.max(Number(query.get('starting_after') ?? 0), Number(headers['last-event-id'] ?? 0))
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
  const write = () => {
    for (const { seq, data } of log.entries) {
      if (seq <= after) continue
      after = seq
      response.write(`id: ${seq}\ndata: ${JSON.stringify(data)}\n\n`)
      if ((data as { type: string }).type === 'done') response.end()
    }
  }
  const beat = setInterval(() => response.write(': hb\n\n'), 15_000)
  log.readers.add(write)
  raw.on('close', () => {
    clearInterval(beat)
    log.readers.delete(write)
  })
  response.on('close', () => clearInterval(beat))
  write()
  return null
}

export function startRun(state: State, conversation: Conversation, question: Message, answer: Message, model: string): Run {
  const run: Run = {
    id: id(),
    conversation_id: conversation.id,
    question_id: question.id,
    answer_id: answer.id,
    state: 'queued',
    model_requested: model,
    model: '',
    replica: '',
    queue_position: null,
    estimated_wait_s: null,
    attempt: 1,
    ttft_ms: null,
    prompt_tokens: 0,
    cached_tokens: 0,
    completion_tokens: 0,
    error: null,
    created_at: now(),
    started_at: null,
    finished_at: null,
  }
  const log: RunLog = { run, entries: [], readers: new Set(), cancel: () => undefined }
  state.runs.set(run.id, log)
  void play(state, conversation, question, answer, log)
  return run
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function play(state: State, conversation: Conversation, question: Message, answer: Message, log: RunLog): Promise<void> {
  const has = (word: string) => question.text.toLowerCase().includes(word)
  const emit = (data: unknown) => {
    log.entries.push({ seq: log.entries.length + 1, data })
    for (const reader of log.readers) reader()
  }
  const stop = new AbortController()
  log.cancel = () => stop.abort()
  const model = 'smollm2-135m'
  const status = (kind: string, position: number | null, attempt = 1) =>
    emit({ type: 'state', state: kind, attempt, position, estimated_wait_s: position && position * 2.4, model, replica: kind === 'running' ? 'smollm2-135m/0' : null })
  await wait(60)
  if (has('queue')) {
    for (let position = 4; position > 0 && !stop.signal.aborted; position -= 1) {
      status('queued', position)
      await wait(1500)
    }
  }
  log.run.state = 'running'
  answer.status = 'running'
  answer.model = model
  status('running', null)
  const cited = has('cite') || question.files.length > 0
  if (cited) {
    const files = unready(question)
    emit({ type: 'passages', passages: passages(question), mode: has('keyword') ? 'keyword' : 'hybrid', unready: files })
    if (has('keyword')) answer.notices.push({ kind: 'keyword_only' })
    if (files.length > 0) answer.notices.push({ kind: 'unready', files })
  }
  await wait(350)
  const full = cited ? ANSWERS.cite : has('empty') ? '' : has('long') ? ANSWERS.long : has('code') || has('table') ? ANSWERS.code : has('short') ? ANSWERS.short : ANSWERS.markdown
  const stopAt = has('fail') ? 90 : Infinity
  for (const token of full.match(/\s*\S+/g) ?? []) {
    if (stop.signal.aborted || answer.text.length > stopAt) break
    if (has('reconstruct') && answer.text.length > 120 && log.run.attempt === 1) {
      log.run.attempt = 2
      await wait(1200)
      const place = { at: [...answer.text].length, attempt: 2, replica: 'smollm2-135m/1' }
      emit({ type: 'reconstructed', ...place })
      answer.notices.push({ kind: 'reconstructed', ...place })
    }
    emit({ type: 'text', at: [...answer.text].length, text: token })
    answer.text += token
    await wait(has('slow') ? 300 : 28)
  }
  if (cited && !stop.signal.aborted) {
    answer.citations = passages(question)
    emit({ type: 'citations', citations: answer.citations })
  }
  const final = stop.signal.aborted ? 'cancelled' : has('fail') ? 'failed' : 'completed'
  if (final === 'failed') answer.error = { code: 'no_replica', message: 'The model stopped and no other replica could go on.', retry_after_s: 5 }
  answer.status = final
  answer.finished_at = now()
  log.run.state = final
  log.run.error = answer.error
  log.run.finished_at = now()
  emit({
    type: 'done',
    state: final,
    finish_reason: final === 'completed' ? 'stop' : final === 'cancelled' ? 'cancelled' : null,
    usage: { prompt_tokens: 210, cached_tokens: 128, completion_tokens: 190 },
    message: answer,
    error: answer.error,
  })
  notify(state, { type: 'run', run: log.run })
  change(state, conversation, { active_run_id: null })
  if (!conversation.title) {
    await wait(900)
    change(state, conversation, { title: question.text.replace(/\s+/g, ' ').slice(0, 40) })
  }
}

function passages(question: Message): Passage[] {
  const file = question.files[0] ?? { id: 'demo-file', name: 'Hall survey 1998.pdf' }
  const base = { file_id: file.id, file_name: file.name, heading: '2 Structure' }
  return [
    { ...base, n: 1, passage_id: id(), page: 1, boxes: [[0.12, 0.27, 0.88, 0.335]], text: 'Cedar beams carry the roof of the hall; each of them spans eleven metres.', source: 'digital' },
    { ...base, n: 2, passage_id: id(), page: 2, boxes: [[0.12, 0.4, 0.86, 0.44]], text: 'The east wing was added in 1904. Its drawings survive as scans.', source: 'ocr' },
  ]
}

function unready(question: Message) {
  return question.files
    .filter((file) => file.state === 'processing')
    .map((file) => ({ file_id: file.id, file_name: file.name, pages_pending: [7, 8, 9], pages_failed: [], state: 'reading' as const, reason: '' }))
}

/** Mock of uploads, pages and page images. Pages become ready one by one; an image is drawn as SVG. */
import type { FileKind, FileRecord, PageRecord, UploadPlan } from '../../src/shared/api/types.ts'
import { PAGE_TEXT } from './content.ts'
import { summaryOf } from './summaries.ts'
import { created, empty, ok, Problem, type Answer, type Request } from './http.ts'
import { id, notify, now, type MockFile, type State } from './state.ts'

const PART = 8_388_608
const KINDS: Record<string, FileKind> = { pdf: 'pdf', docx: 'docx', txt: 'text', md: 'markdown', png: 'image', jpg: 'image', jpeg: 'image' }
const missing = () => new Problem(404, 'not_found', 'This file does not exist, or it was deleted.')

/** Files in every state, so that the list and the details can be seen. */
function seed(state: State): void {
  const add = (name: string, size: number, kind: FileKind, change: Partial<FileRecord>, entries: Partial<PageRecord>[] = []) => {
    const file = { ...record(name, size, kind), stage: null, ...change }
    const all = entries.map((entry, index) => ({ ...page(index + 1), state: 'ready' as const, source: 'digital' as const, ...entry }))
    state.files.set(file.id, { file, pages: all, parts: new Map(), texts: [] })
  }
  const scan = { source: 'ocr' } as const
  const twelve: Partial<PageRecord>[] = Array.from({ length: 12 }, (_, index) => (index > 7 ? scan : {}))
  add('Hall survey 1998.pdf', 2_140_000, 'pdf', { state: 'ready', page_count: 12, pages_ready: 12, searchable: 'hybrid', created_at: now(3600) }, twelve)
  add('Letters of the surveyor, transcribed and annotated for the county archive (second edition).pdf', 18_400_000, 'pdf', { state: 'processing', stage: 'ocr', page_count: 12, pages_ready: 8, searchable: 'keyword', created_at: now(5400) }, [
    ...twelve.slice(0, 8),
    { state: 'ocr', source: null },
    ...Array.from({ length: 3 }, () => ({ state: 'pending', source: null }) as const),
  ])
  add('Minutes 2023.docx', 84_000, 'docx', { state: 'ready', page_count: 2, pages_ready: 2, searchable: 'hybrid', created_at: now(90_000) }, [noImage, noImage])
  const faint = { state: 'failed', source: null, error: { code: 'ocr', message: 'The scan is too faint.' } } as const
  add('Ledger 1904 (scan).pdf', 44_000_000, 'pdf', { state: 'partial', page_count: 6, pages_ready: 4, pages_failed: [2, 5], searchable: 'keyword', created_at: now(200_000) }, [scan, faint, scan, scan, faint, scan])
  add('Contract-encrypted.pdf', 310_000, 'pdf', { state: 'failed', error: { code: 'encrypted', message: 'The file is protected with a password. Remove the protection and upload it again.' }, created_at: now(400_000) })
  add('notes.md', 3_100, 'markdown', { state: 'ready', page_count: 1, pages_ready: 1, searchable: 'hybrid', created_at: now(40_000_000) }, [noImage])
  add('whiteboard.jpg', 3_900_000, 'image', { state: 'ready', page_count: 1, pages_ready: 1, searchable: 'hybrid', created_at: now(41_000_000) }, [scan])
}

function usage(state: State) {
  const kept = [...state.files.values()]
  const mine = { files: kept.length, bytes: kept.reduce((sum, item) => sum + item.file.size, 0), files_at_most: 1_000, bytes_at_most: 10_737_418_240 }
  return { mine, organization: { ...mine, files_at_most: null, bytes_at_most: null } }
}

const noImage = { width: null, height: null } as const

export function handleFiles(state: State, request: Request): Answer | null | undefined {
  const [, root, kind, fileId, part, number, image] = request.path.split('/')
  if (root === 'storage') return putPart(state, request)
  if (root !== 'api' || kind !== 'files') return undefined
  if (state.scene.has('files') && state.files.size === 0) seed(state)
  if (!fileId) return request.method === 'POST' ? create(state, request) : ok({ results: [...state.files.values()].map((item) => item.file), next: null })
  if (fileId === 'usage') return ok(usage(state))
  const item = state.files.get(fileId) ?? (fileId === 'demo-file' ? demo(state) : undefined)
  if (!item) throw missing()
  if (request.method === 'DELETE') {
    state.files.delete(fileId)
    return empty
  }
  if (part === 'upload') return ok({ ...plan(item), received: [...item.parts].map(([n, received]) => ({ number: n, ...received })) })
  if (part === 'complete' || part === 'retry') return complete(state, item)
  if (part === 'cancel') return cancel(state, item)
  if (part === 'summary') return ok(summaryOf(item, request.method === 'POST'))
  if (part === 'pages' && image === 'image') return pageImage(item, Number(number), request)
  if (part === 'pages') return pages(item, number)
  return ok(item.file)
}

function create(state: State, { json }: Request): Answer {
  const name = String(json['name'])
  const extension = name.split('.').pop()?.toLowerCase() ?? ''
  const kind = KINDS[extension]
  if (!kind) throw new Problem(415, 'unsupported_file', `Files of the type .${extension} cannot be read yet.`)
  const size = Number(json['size'])
  if (size > 104_857_600) throw new Problem(413, 'too_large', 'The file is larger than 100 MiB.')
  const item = { file: record(name, size, kind), pages: [], parts: new Map(), texts: [] }
  state.files.set(item.file.id, item)
  return created({ file: item.file, upload: plan(item) })
}

function record(name: string, size: number, kind: FileKind): FileRecord {
  return {
    id: id(),
    name,
    size,
    content_type: 'application/octet-stream',
    kind,
    state: 'uploading',
    stage: 'upload',
    page_count: null,
    pages_ready: 0,
    pages_failed: [],
    searchable: 'none',
    error: null,
    scanner: 'signatures',
    notices: [],
    created_at: now(),
    seconds_left: null,
  }
}

function plan({ file }: MockFile): UploadPlan {
  const count = Math.max(1, Math.ceil(file.size / PART))
  const sizeOf = (index: number) => Math.min(PART, file.size - index * PART)
  const parts = Array.from({ length: count }, (_, index) => ({ number: index + 1, url: `/storage/${file.id}/${index + 1}?sig=mock`, size: sizeOf(index) }))
  return { part_size: PART, parts, expires_at: now(-3600) }
}

function putPart(state: State, { path, bytes, response }: Request): Answer {
  const [, , fileId, number] = path.split('/')
  const item = state.files.get(fileId ?? '')
  if (!item) throw missing()
  const etag = `"${bytes.length.toString(16)}"`
  item.parts.set(Number(number), { etag, size: bytes.length })
  response.setHeader('ETag', etag)
  return ok({})
}

function complete(state: State, item: MockFile): Answer {
  if (item.file.state === 'uploading' || item.file.state === 'failed') void process(state, item)
  return ok(item.file)
}

function cancel(state: State, item: MockFile): Answer {
  const unread = item.pages.filter((entry) => entry.state !== 'ready')
  const error = { code: 'cancelled', message: 'Reading was stopped.' }
  for (const entry of unread) Object.assign(entry, { state: 'failed', error })
  const some = item.file.pages_ready > 0
  Object.assign(item.file, { state: some ? 'partial' : 'failed', stage: null, seconds_left: null, error, pages_failed: unread.map((entry) => entry.number) })
  notify(state, { type: 'file', file: item.file })
  return ok(item.file)
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function process(state: State, item: MockFile): Promise<void> {
  const update = (change: Partial<FileRecord>) => {
    Object.assign(item.file, change)
    notify(state, { type: 'file', file: item.file })
  }
  update({ state: 'processing', stage: 'verify', error: null })
  await wait(600)
  if (item.file.name.includes('encrypted')) {
    return update({ state: 'failed', stage: null, error: { code: 'encrypted', message: 'This PDF is protected by a password.' } })
  }
  const count = item.file.kind === 'pdf' ? 12 : 2
  item.pages = Array.from({ length: count }, (_, index) => page(index + 1))
  update({ stage: 'parse', page_count: count })
  for (const [index, entry] of item.pages.entries()) {
    await wait(700)
    if (item.file.state !== 'processing') return
    const scanned = item.file.kind === 'pdf' && index >= 8
    Object.assign(entry, { state: 'ready', source: scanned ? 'ocr' : 'digital' })
    update({ stage: scanned ? 'ocr' : 'parse', pages_ready: index + 1, searchable: 'keyword', seconds_left: Math.ceil((count - index - 1) * 0.7) })
  }
  update({ stage: 'embed', seconds_left: null })
  await wait(900)
  update({ state: 'ready', stage: null, searchable: 'hybrid' })
}

const page = (number: number): PageRecord => ({ number, state: 'pending', source: null, width: 595, height: 842, error: null })

function demo(state: State): MockFile {
  const file = { ...record('Hall survey 1998.pdf', 214_000, 'pdf'), id: 'demo-file', state: 'ready' as const, stage: null, page_count: 3, pages_ready: 3 }
  const item = { file, pages: [1, 2, 3].map((n) => ({ ...page(n), state: 'ready' as const, source: 'digital' as const })), parts: new Map(), texts: [] }
  state.files.set(file.id, item)
  return item
}

function pages(item: MockFile, number: string | undefined): Answer {
  if (!number) return ok({ results: item.pages })
  const found = item.pages.find((entry) => entry.number === Number(number))
  if (!found) throw missing()
  return ok({ ...found, text: PAGE_TEXT })
}

function pageImage(item: MockFile, number: number, { response }: Request): null {
  if (item.file.kind === 'text' || item.file.kind === 'markdown') throw missing()
  const rows = PAGE_TEXT.split(/(?<=[.;]) |\n\n/).map((line, index) => `<text x="72" y="${130 + index * 62 * 1.65}" font-size="15">${line.slice(0, 62)}</text>`)
  response.setHeader('Content-Type', 'image/svg+xml')
  response.end(
    `<svg xmlns="http://www.w3.org/2000/svg" width="1190" height="1684" viewBox="0 0 595 842" font-family="serif" fill="#222"><rect width="595" height="842" fill="#fff"/><text x="72" y="80" font-size="22">Page ${number}</text>${rows.join('')}</svg>`,
  )
  return null
}

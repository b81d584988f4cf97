import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ApiError, NetworkError, emitNotification, type FileRecord, type UploadPlan } from '@/shared/api'
import { formatBytes, refusalOf } from './limits'
import { listPages, progressOfFile, progressOfUpload, timeLeft } from './progress'
import { clearRecords, files, putRecord } from './records'
import type { PartTag, UploadTransport } from './transport'
import { runUpload, Slots } from './upload'
import { addUpload, cancelUpload, clearUploads, restoreUploads, resumeUpload, retryUpload, uploads, uploadOf, setTransport } from './uploads'

const record = (change: Partial<FileRecord> = {}): FileRecord => ({
  id: 'f1',
  name: 'a.pdf',
  size: 25,
  content_type: 'application/pdf',
  kind: 'pdf',
  state: 'uploading',
  stage: 'upload',
  page_count: null,
  pages_ready: 0,
  pages_failed: [],
  searchable: 'none',
  error: null,
  scanner: 'signatures',
  notices: [],
  seconds_left: null,
  created_at: '2026-01-01T00:00:00Z',
  ...change,
})

// jsdom's Blob has no text() and arrayBuffer().
const readBlob = (blob: Blob): Promise<ArrayBuffer> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener('load', () => resolve(reader.result as ArrayBuffer))
    reader.addEventListener('error', () => reject(reader.error ?? new Error('unreadable')))
    reader.readAsArrayBuffer(blob)
  })
Blob.prototype.arrayBuffer ??= function arrayBuffer(this: Blob) {
  return readBlob(this)
}
Blob.prototype.text ??= async function text(this: Blob) {
  return new TextDecoder().decode(await readBlob(this))
}

const PART = 10

/** A store in memory that speaks the upload API and fails on demand: each entry of `failures` is thrown by one put. */
class FakeServer implements UploadTransport {
  received = new Map<number, { etag: string; bytes: string }>()
  failures: unknown[] = []
  calls: string[] = []
  underWay = 0
  mostUnderWay = 0
  urls = 1
  completed: PartTag[] | null = null
  removed: string[] = []
  statusError: unknown = null

  constructor(readonly size: number) {}

  plan(): UploadPlan {
    const count = Math.ceil(this.size / PART)
    const parts = Array.from({ length: count }, (_, index) => ({
      number: index + 1,
      url: `/storage/${this.urls}/${index + 1}`,
      size: Math.min(PART, this.size - index * PART),
    }))
    return { part_size: PART, parts, expires_at: '' }
  }

  async create() {
    this.calls.push('create')
    return { file: record({ size: this.size }), upload: this.plan() }
  }

  async status() {
    this.calls.push('status')
    if (this.statusError) throw this.statusError
    this.urls += 1
    return { ...this.plan(), received: [...this.received].map(([number, part]) => ({ number, etag: part.etag, size: part.bytes.length })) }
  }

  async put(url: string, body: Blob, onProgress: (sent: number) => void, signal: AbortSignal) {
    this.underWay += 1
    this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay)
    try {
      onProgress(Math.floor(body.size / 2))
      await new Promise((resolve) => setTimeout(resolve, 1))
      signal.throwIfAborted()
      const [, , generation, number] = url.split('/')
      if (this.failures.length > 0) throw this.failures.shift()
      if (Number(generation) < this.oldest) throw new ApiError(403, 'http_403', 'expired')
      onProgress(body.size)
      const etag = `"e${number}"`
      this.received.set(Number(number), { etag, bytes: await body.text() })
      return etag
    } finally {
      this.underWay -= 1
    }
  }

  oldest = 0

  async complete(_id: string, parts: PartTag[]) {
    this.calls.push('complete')
    if (parts.some((part) => this.received.get(part.number)?.etag !== part.etag)) throw new ApiError(422, 'invalid', 'A part is missing.')
    this.completed = parts
    return record({ size: this.size, state: 'processing', stage: 'verify' })
  }

  async remove(id: string) {
    this.removed.push(id)
  }

  content(): string {
    return [...this.received].toSorted(([a], [b]) => a - b).map(([, part]) => part.bytes).join('')
  }
}

const text = (length: number): string => Array.from({ length }, (_, index) => String.fromCodePoint(97 + (index % 26))).join('')
const blobOf = (content: string): File => new File([content], 'a.pdf', { type: 'application/pdf', lastModified: 5 })

function start(server: FakeServer, content: string, change: Partial<Parameters<typeof runUpload>[0]> = {}) {
  const sleeps: number[] = []
  const promise = runUpload({
    blob: blobOf(content),
    name: 'a.pdf',
    contentType: 'application/pdf',
    resume: null,
    transport: server,
    slots: new Slots(3),
    signal: new AbortController().signal,
    onFile: () => undefined,
    onProgress: () => undefined,
    onCompleting: () => undefined,
    onWaiting: () => undefined,
    sleep: async (ms) => void sleeps.push(ms),
    ...change,
  })
  return { promise, sleeps }
}

describe('one upload', () => {
  test('sends every byte once, three parts at a time', async () => {
    const server = new FakeServer(95)
    let last = 0
    const { promise } = start(server, text(95), { onProgress: (sent) => (last = sent) })
    expect((await promise).state).toBe('processing')
    expect(server.content()).toBe(text(95))
    expect(server.mostUnderWay).toBe(3)
    expect(server.completed?.map((part) => part.number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(last).toBe(95)
  })

  test('tries lost parts again with growing pauses', async () => {
    const server = new FakeServer(25)
    server.failures = [new NetworkError('lost'), new ApiError(503, 'http_503', 'busy', null, 7), new NetworkError('lost')]
    const { promise, sleeps } = start(server, text(25))
    await promise
    expect(server.content()).toBe(text(25))
    expect(sleeps).toHaveLength(3)
    expect(Math.max(...sleeps)).toBe(7000)
  })

  test('gives up on a part that is never taken, and stops the others', async () => {
    const server = new FakeServer(95)
    server.failures = Array.from({ length: 200 }, () => new NetworkError('lost'))
    await expect(start(server, text(95)).promise).rejects.toThrow('lost')
    await new Promise((resolve) => setTimeout(resolve, 10))
    expect(server.underWay).toBe(0)
    expect(server.completed).toBeNull()
  })

  test('takes new addresses once when the old ones have expired', async () => {
    const server = new FakeServer(45)
    server.oldest = 2
    await start(server, text(45)).promise
    expect(server.content()).toBe(text(45))
    expect(server.calls).toEqual(['create', 'status', 'complete'])
  })

  test('does not ask for new addresses for ever', async () => {
    const server = new FakeServer(25)
    server.oldest = 99
    await expect(start(server, text(25)).promise).rejects.toThrow('The storage refuses the file.')
  })

  test('a final refusal is not repeated', async () => {
    const server = new FakeServer(5)
    server.create = async () => {
      server.calls.push('create')
      throw new ApiError(415, 'unsupported_file', 'Not this kind.')
    }
    await expect(start(server, text(5)).promise).rejects.toThrow('Not this kind.')
    expect(server.calls).toEqual(['create'])
  })

  test('goes on from the parts that have arrived', async () => {
    const server = new FakeServer(45)
    server.received.set(1, { etag: '"e1"', bytes: text(45).slice(0, 10) })
    server.received.set(3, { etag: '"e3"', bytes: text(45).slice(20, 30) })
    const seen: number[] = []
    await start(server, text(45), { resume: 'f1', onProgress: (sent) => seen.push(sent) }).promise
    expect(seen[0]).toBe(20)
    expect(server.content()).toBe(text(45))
    expect(server.calls).toEqual(['status', 'complete'])
  })

  test('begins anew when the earlier upload is gone', async () => {
    const server = new FakeServer(15)
    server.statusError = new ApiError(404, 'not_found', 'gone')
    await start(server, text(15), { resume: 'old' }).promise
    expect(server.calls).toEqual(['status', 'create', 'complete'])
  })

  test('sends again what the server lost before completion', async () => {
    const server = new FakeServer(25)
    const complete = server.complete.bind(server)
    let first = true
    server.complete = async (id, parts) => {
      if (first) server.received.delete(2)
      first = false
      return complete(id, parts)
    }
    await start(server, text(25)).promise
    expect(server.content()).toBe(text(25))
  })

  test('ends at once when it is cancelled', async () => {
    const server = new FakeServer(95)
    const abort = new AbortController()
    const { promise } = start(server, text(95), { signal: abort.signal })
    setTimeout(() => abort.abort(), 2)
    await expect(promise).rejects.toHaveProperty('name', 'AbortError')
    expect(server.completed).toBeNull()
  })
})

describe('all uploads', () => {
  let server = new FakeServer(25)
  beforeEach(() => {
    localStorage.clear()
    server = new FakeServer(25)
    setTransport(server)
  })
  afterEach(() => {
    clearUploads()
    clearRecords()
  })
  const settled = (key: string) => vi.waitFor(() => expect(uploadOf(key)?.state).not.toBe('sending'))

  test('a file goes up and its record is known', async () => {
    const { key } = addUpload(blobOf(text(25)))
    await settled(key)
    expect(uploadOf(key)).toMatchObject({ state: 'done', fileId: 'f1', sentBytes: 25 })
    expect(files.get().byId.get('f1')?.state).toBe('processing')
    expect(localStorage.getItem('parley.uploads')).toBeNull()
  })

  test('what cannot be read is refused before anything is sent', () => {
    const { key } = addUpload(new File(['x'], 'a.exe'))
    expect(uploadOf(key)).toMatchObject({ state: 'failed', canRetry: false })
    expect(server.calls).toEqual([])
  })

  test('a failed upload can be tried again and keeps its parts', async () => {
    server.statusError = new ApiError(401, 'not_authenticated', 'Sign in to continue.')
    server.oldest = 2
    const { key } = addUpload(blobOf(text(25)))
    await settled(key)
    expect(uploadOf(key)).toMatchObject({ state: 'failed', error: 'Sign in to continue.', canRetry: true })
    server.statusError = null
    retryUpload(key)
    await settled(key)
    expect(uploadOf(key)?.state).toBe('done')
    expect(server.calls.filter((call) => call === 'create')).toHaveLength(1)
  })

  test('after a reload the same file goes on, another one does not', async () => {
    server.failures = Array.from({ length: 99 }, () => new ApiError(507, 'http_507', 'full', null, 60))
    const { key } = addUpload(blobOf(text(25)))
    await vi.waitFor(() => expect(localStorage.getItem('parley.uploads')).toContain('f1'))
    const kept = localStorage.getItem('parley.uploads') ?? ''
    clearUploads()
    localStorage.setItem('parley.uploads', kept)
    restoreUploads()
    expect(uploads.get()).toMatchObject([{ key, state: 'paused', fileId: 'f1' }])
    expect(resumeUpload(key, new File(['y'], 'a.pdf', { lastModified: 5 }))).toBe(false)
    server.failures = []
    server.received.set(1, { etag: '"e1"', bytes: text(25).slice(0, 10) })
    expect(addUpload(blobOf(text(25))).key).toBe(key)
    await settled(key)
    expect(uploadOf(key)?.state).toBe('done')
    expect(server.calls).toEqual(['create', 'status', 'complete'])
    expect(server.content()).toBe(text(25))
  })

  test('cancelling removes what the server has', async () => {
    server.failures = [new NetworkError('lost'), new NetworkError('lost'), new NetworkError('lost')]
    const { key } = addUpload(blobOf(text(25)))
    await vi.waitFor(() => expect(uploadOf(key)?.fileId).toBe('f1'))
    cancelUpload(key)
    expect(uploads.get()).toEqual([])
    expect(server.removed).toEqual(['f1'])
  })
})

describe('records', () => {
  afterEach(() => clearRecords())

  test('an answer that was asked for before a notification came is older', () => {
    vi.useFakeTimers()
    const askedAt = Date.now()
    vi.advanceTimersByTime(5)
    emitNotification({ type: 'file', file: record({ state: 'processing', stage: 'parse', page_count: 3, pages_ready: 2 }) })
    putRecord(record({ state: 'processing', stage: 'verify' }), askedAt)
    expect(files.get().byId.get('f1')?.pages_ready).toBe(2)
    vi.useRealTimers()
  })

  test('a deleted file is forgotten', () => {
    putRecord(record())
    emitNotification({ type: 'file', file: record({ state: 'deleted' }) })
    expect(files.get().byId.size).toBe(0)
  })
})

describe('words', () => {
  const busy = (change: Partial<FileRecord>) => progressOfFile(record({ state: 'processing', ...change }))
  test.each([
    [busy({ stage: 'verify' }), 'Checking the file', null],
    [busy({ stage: 'parse' }), 'Opening the file', null],
    [busy({ stage: 'parse', page_count: 12, pages_ready: 3 }), '3 of 12 pages ready, 9 being read', 0.25],
    [busy({ stage: 'ocr', page_count: 12, pages_ready: 8 }), '8 of 12 pages ready, 4 being read (scans, OCR)', 8 / 12],
    [busy({ stage: 'parse', page_count: 12, pages_ready: 3, seconds_left: 130 }), '3 of 12 pages ready, 9 being read, about 2 minutes left', 0.25],
    [progressOfFile(record({ state: 'partial', page_count: 6, pages_ready: 2, pages_failed: [3, 4, 5, 6], error: { code: 'cancelled', message: 'Stopped.' } })), 'Stopped: 2 of 6 pages read', null],
    [busy({ stage: 'embed', page_count: 1, pages_ready: 1 }), '1 page read, indexing', 1],
    [progressOfFile(record({ state: 'ready', page_count: 12 })), '12 pages', null],
    [progressOfFile(record({ state: 'partial', page_count: 12, pages_ready: 10, pages_failed: [9, 10] })), '10 of 12 pages readable; pages 9 and 10 failed', null],
    [progressOfFile(record({ state: 'failed', error: { code: 'encrypted', message: 'Locked.' } })), 'Locked.', null],
  ])('%#', (progress, expected, fraction) => expect(progress).toMatchObject({ text: expected, fraction }))

  test.each([
    [0, 'a few seconds left'],
    [11, 'about 20 seconds left'],
    [55, 'about 1 minute left'],
    [600, 'about 10 minutes left'],
    [7_200, 'about 2 hours left'],
  ])('%d seconds', (seconds, expected) => expect(timeLeft(seconds)).toBe(expected))

  test('an upload says how much is sent', () => {
    const upload = { key: 'k', name: 'a.pdf', size: 3_400_000, lastModified: 0, state: 'sending', waiting: false, sentBytes: 1_250_000, fileId: null, file: null, error: null, canRetry: true } as const
    expect(progressOfUpload(upload).text).toBe('Uploading 1.2 MB of 3.4 MB')
    expect(progressOfUpload({ ...upload, waiting: true }).text).toBe('Waiting for the connection')
  })

  test.each([
    [[3], '3'],
    [[3, 4], '3 and 4'],
    [[5, 6, 7, 8, 3, 12], '3, 5–8 and 12'],
    [[1, 3, 5, 7, 9, 11, 13, 15, 17], '1, 3, 5, 7, 9, 11, 13 and others'],
  ])('pages %j', (numbers, expected) => expect(listPages(numbers)).toBe(expected))

  test.each([
    [500, '500 B'],
    [214_000, '214 kB'],
    [3_450_000, '3.4 MB'],
    [104_857_600, '104 MB'],
    [10_737_418_240, '10.7 GB'],
  ])('%d bytes', (bytes, expected) => expect(formatBytes(bytes)).toBe(expected))

  test.each([
    ['a.pdf', 10, null],
    ['A.PDF', 10, null],
    ['a.pdf', 0, 'The file is empty.'],
    ['a.pdf', 200_000_000, 'The file has 200 MB; up to 104 MB are possible.'],
    ['a.exe', 10, 'Files ending in .exe cannot be read. Documents, spreadsheets, mail, pictures, text, code and ZIP archives can.'],
    ['README', 10, 'Files without an ending cannot be read. Documents, spreadsheets, mail, pictures, text, code and ZIP archives can.'],
  ])('limits for %s of %d', (name, size, expected) => expect(refusalOf({ name, size })).toBe(expected))
})

/**
 * All uploads of this tab, outside React: they go on while a person moves between conversations and pages.
 *
 * What survives a reload: the server keeps the parts that arrived, and this browser remembers which file they belong to
 * (name, size, date), but not its bytes. Such an upload is `paused` until the same file is chosen again; then only the
 * missing parts are sent.
 */
import { describeError, type FileRecord, type Id } from '@/shared/api'
import { createStore, newId, readStored, writeStored } from '@/shared/hooks'
import { putRecord } from './records'
import { refusalOf } from './limits'
import { transport as realTransport, type UploadTransport } from './transport'
import { runUpload, Slots } from './upload'

export interface Upload {
  key: string
  name: string
  size: number
  lastModified: number
  state: 'sending' | 'paused' | 'done' | 'failed'
  /** Nothing moves because the network or the server has to come back. */
  waiting: boolean
  sentBytes: number
  /** The server's id, known once the upload was announced. */
  fileId: Id | null
  file: FileRecord | null
  error: string | null
  /** Whether trying again makes sense: not for a file that cannot be read at all. */
  canRetry: boolean
}

interface Remembered {
  key: string
  fileId: Id
  name: string
  size: number
  lastModified: number
  at: number
}

/** Parts under way at once, over all files: more does not make one connection faster. */
const PARALLEL = 3
const KEY = 'uploads'
/** The server drops unfinished uploads after a day. */
const KEEP_MS = 24 * 3600 * 1000
const PROGRESS_MS = 100

export const uploads = createStore<readonly Upload[]>([])
const blobs = new Map<string, File>()
const aborts = new Map<string, AbortController>()
const slots = new Slots(PARALLEL)
let transport: UploadTransport = realTransport

/** For tests: another server. */
export function setTransport(other: UploadTransport): void {
  transport = other
}

export const uploadOf = (key: string): Upload | undefined => uploads.get().find((upload) => upload.key === key)

/** Begin to upload a file, or go on with one that a reload interrupted. Never throws: what is wrong stands in the upload. */
export function addUpload(file: File): Upload {
  const paused = uploads.get().find((upload) => upload.state === 'paused' && isSame(upload, file))
  if (paused) {
    resumeUpload(paused.key, file)
    return uploadOf(paused.key) ?? paused
  }
  const error = refusalOf(file)
  const upload: Upload = {
    key: newId(),
    name: file.name,
    size: file.size,
    lastModified: file.lastModified,
    state: error ? 'failed' : 'sending',
    waiting: false,
    sentBytes: 0,
    fileId: null,
    file: null,
    error,
    canRetry: false,
  }
  uploads.set((old) => [...old, upload])
  if (!error) {
    blobs.set(upload.key, file)
    void send(upload.key)
  }
  return upload
}

/** Go on with a paused upload, now that its file was chosen again. False when it is another file. */
export function resumeUpload(key: string, file: File): boolean {
  const upload = uploadOf(key)
  if (!upload || upload.state === 'done' || !isSame(upload, file)) return false
  blobs.set(key, file)
  void send(key)
  return true
}

/** Try a failed upload again. Without its bytes it becomes paused. */
export function retryUpload(key: string): void {
  const upload = uploadOf(key)
  if (!upload || upload.state !== 'failed' || !upload.canRetry) return
  if (blobs.has(key)) void send(key)
  else patch(key, { state: 'paused', error: null })
}

/** Stop an unfinished upload and remove what the server has of it. A finished one is only forgotten here. */
export function cancelUpload(key: string): void {
  const upload = uploadOf(key)
  aborts.get(key)?.abort()
  forget(key)
  if (upload?.fileId && upload.state !== 'done') transport.remove(upload.fileId).catch(() => undefined)
}

/** Drop an upload from this list; its file stays. */
export function forget(key: string): void {
  blobs.delete(key)
  aborts.delete(key)
  remember(key, null)
  uploads.set((old) => old.filter((upload) => upload.key !== key))
}

/** For sign-out: another person must find nothing. */
export function clearUploads(): void {
  for (const controller of aborts.values()) controller.abort()
  blobs.clear()
  aborts.clear()
  uploads.set([])
  writeStored(KEY, null)
}

/** Uploads that an earlier page did not finish. Called once at start. */
export function restoreUploads(now = Date.now()): void {
  const known = new Set(uploads.get().map((upload) => upload.key))
  const restored = remembered()
    .filter((entry) => now - entry.at < KEEP_MS && !known.has(entry.key))
    .map(({ key, fileId, name, size, lastModified }): Upload => {
      return { key, fileId, name, size, lastModified, state: 'paused', waiting: false, sentBytes: 0, file: null, error: null, canRetry: true }
    })
  if (restored.length > 0) uploads.set((old) => [...restored, ...old])
}

async function send(key: string): Promise<void> {
  const blob = blobs.get(key)
  const upload = uploadOf(key)
  if (!blob || !upload || aborts.has(key)) return
  const abort = new AbortController()
  aborts.set(key, abort)
  patch(key, { state: 'sending', waiting: false, error: null })
  let askedAt = 0
  const report = throttle((sentBytes: number) => patch(key, { sentBytes }), PROGRESS_MS)
  try {
    const file = await runUpload({
      blob,
      name: upload.name,
      contentType: blob.type || 'application/octet-stream',
      resume: upload.fileId,
      transport,
      slots,
      signal: abort.signal,
      onFile: (record, fileId) => {
        patch(key, { fileId, ...(record ? { file: record } : {}) })
        if (record) putRecord(record)
        remember(key, { key, fileId, name: upload.name, size: upload.size, lastModified: upload.lastModified, at: Date.now() })
      },
      onProgress: report,
      onCompleting: () => {
        askedAt = Date.now()
      },
      onWaiting: (waiting) => patch(key, { waiting }),
    })
    report.cancel()
    finish(key, file, askedAt)
  } catch (error) {
    report.cancel()
    if (!abort.signal.aborted) patch(key, { state: 'failed', waiting: false, canRetry: true, error: await reasonOf(error, blob) })
  } finally {
    if (aborts.get(key) === abort) aborts.delete(key)
  }
}

function finish(key: string, file: FileRecord, askedAt: number): void {
  blobs.delete(key)
  remember(key, null)
  putRecord(file, askedAt)
  patch(key, { state: 'done', waiting: false, file, sentBytes: file.size })
}

/** A file that was changed or moved since it was chosen cannot be read any more; the network error says nothing of it. */
async function reasonOf(error: unknown, blob: Blob): Promise<string> {
  try {
    await blob.slice(0, 1).arrayBuffer()
  } catch {
    return 'The file was changed or moved on your device. Choose it again.'
  }
  return describeError(error)
}

function patch(key: string, change: Partial<Upload>): void {
  uploads.set((old) => old.map((upload) => (upload.key === key ? { ...upload, ...change } : upload)))
}

const isSame = (upload: Upload, file: File): boolean =>
  upload.name === file.name && upload.size === file.size && upload.lastModified === file.lastModified

function remembered(): Remembered[] {
  const isEntry = (value: unknown): value is Remembered => {
    const entry = value as Partial<Remembered> | null
    return typeof entry?.key === 'string' && typeof entry.fileId === 'string' && typeof entry.name === 'string' && typeof entry.size === 'number'
  }
  return (readStored(KEY, (value): value is unknown[] => Array.isArray(value)) ?? []).filter(isEntry)
}

function remember(key: string, entry: Remembered | null): void {
  const others = remembered().filter((old) => old.key !== key)
  const next = entry ? [...others, entry].slice(-100) : others
  writeStored(KEY, next.length > 0 ? next : null)
}

interface Throttled<T> {
  (value: T): void
  cancel: () => void
}

/** Calls at most every `ms`, with the last value; a progress bar needs no more, and each call renders. */
function throttle<T>(call: (value: T) => void, ms: number): Throttled<T> {
  let timer = 0
  let latest: T
  const throttled = (value: T) => {
    latest = value
    timer ||= window.setTimeout(() => {
      timer = 0
      call(latest)
    }, ms)
  }
  throttled.cancel = () => {
    clearTimeout(timer)
    timer = 0
  }
  return throttled
}

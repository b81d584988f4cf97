/** What is happening to a file, in words and as a fraction. */
import type { FileRecord } from '@/shared/api'
import { formatBytes } from './limits'
import type { Upload } from './uploads'

export interface Progress {
  text: string
  /** 0..1, null when it cannot be known. */
  fraction: number | null
  tone: 'busy' | 'ok' | 'warn' | 'error' | 'idle'
}

const pages = (count: number): string => `${count} ${count === 1 ? 'page' : 'pages'}`

export function progressOfUpload(upload: Upload): Progress {
  const fraction = upload.size > 0 ? Math.min(1, upload.sentBytes / upload.size) : 0
  switch (upload.state) {
    case 'failed':
      return { text: upload.error ?? 'The upload failed.', fraction: null, tone: 'error' }
    case 'paused':
      return { text: 'Interrupted. Choose the same file again to go on.', fraction, tone: 'warn' }
    case 'done':
      return upload.file ? progressOfFile(upload.file) : { text: 'Uploaded', fraction: null, tone: 'busy' }
    case 'sending':
      if (upload.waiting) return { text: 'Waiting for the connection', fraction, tone: 'warn' }
      if (fraction >= 1) return { text: 'Finishing', fraction, tone: 'busy' }
      return { text: `Uploading ${formatBytes(upload.sentBytes)} of ${formatBytes(upload.size)}`, fraction, tone: 'busy' }
  }
}

export function progressOfFile(file: FileRecord): Progress {
  switch (file.state) {
    case 'uploading':
      return { text: 'Upload not finished', fraction: null, tone: 'idle' }
    case 'processing':
      return processing(file)
    case 'ready':
      return { text: file.page_count === null ? 'Ready' : pages(file.page_count), fraction: null, tone: 'ok' }
    case 'partial':
      return { text: partial(file), fraction: null, tone: 'warn' }
    case 'needs_password':
      return { text: 'Needs its password', fraction: null, tone: 'warn' }
    case 'failed':
      return { text: file.error?.message ?? 'The file could not be read.', fraction: null, tone: file.error?.code === 'cancelled' ? 'warn' : 'error' }
    case 'deleted':
      return { text: 'Deleted', fraction: null, tone: 'idle' }
  }
}

function partial({ page_count: count, pages_failed: failed, pages_ready: ready, error }: FileRecord): string {
  if (error?.code === 'cancelled') return `Stopped: ${ready} of ${pages(count ?? ready + failed.length)} read`
  if (failed.length === 0) return error?.message ?? 'Partly readable'
  return `${ready} of ${pages(count ?? ready + failed.length)} readable; ${failed.length === 1 ? 'page' : 'pages'} ${listPages(failed)} failed`
}

function processing(file: FileRecord): Progress {
  const { stage, page_count: count, pages_ready: ready, pages_failed: failed } = file
  if (stage === 'verify' || stage === 'upload' || stage === null) return { text: 'Checking the file', fraction: null, tone: 'busy' }
  if (count === null) return { text: 'Opening the file', fraction: null, tone: 'busy' }
  const left = Math.max(0, count - ready - failed.length)
  if (left === 0) return { text: `${pages(count)} read, indexing`, fraction: 1, tone: 'busy' }
  const scanned = stage === 'ocr' ? ' (scans, OCR)' : ''
  const time = file.seconds_left === null ? '' : `, ${timeLeft(file.seconds_left)}`
  return { text: `${ready} of ${pages(count)} ready, ${left} being read${scanned}${time}`, fraction: ready / count, tone: 'busy' }
}

/** "about 2 minutes left": no more exact than an estimate is. */
export function timeLeft(seconds: number): string {
  if (seconds < 10) return 'a few seconds left'
  if (seconds < 55) return `about ${Math.ceil(seconds / 10) * 10} seconds left`
  const minutes = Math.round(seconds / 60)
  if (minutes < 90) return `about ${minutes} ${minutes === 1 ? 'minute' : 'minutes'} left`
  return `about ${Math.round(minutes / 60)} hours left`
}

/** "3, 5–8 and 12"; long lists are cut. */
export function listPages(numbers: readonly number[]): string {
  const sorted = [...new Set(numbers)].toSorted((a, b) => a - b)
  const ranges: string[] = []
  for (let from = 0; from < sorted.length; ) {
    let to = from
    while ((sorted[to + 1] ?? Number.NaN) === (sorted[to] ?? 0) + 1) to += 1
    ranges.push(to - from > 1 ? `${sorted[from]}–${sorted[to]}` : sorted.slice(from, to + 1).join(', '))
    from = to + 1
  }
  const parts = ranges.join(', ').split(', ')
  if (parts.length > 8) return `${parts.slice(0, 7).join(', ')} and others`
  return parts.length > 1 ? `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}` : (parts[0] ?? '')
}

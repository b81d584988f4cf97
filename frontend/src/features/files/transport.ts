/** The upload part of the files API. Parts go by XMLHttpRequest, because fetch tells nothing about the progress of a body. */
import { ApiError, NetworkError, request, type FileRecord, type Id, type UploadPlan, type UploadStatus } from '@/shared/api'

export interface PartTag {
  number: number
  etag: string
}

export interface UploadTransport {
  create: (meta: { name: string; size: number; content_type: string }, signal: AbortSignal) => Promise<{ file: FileRecord; upload: UploadPlan }>
  status: (id: Id, signal: AbortSignal) => Promise<UploadStatus>
  /** The part's ETag. Rejects with ApiError, NetworkError or an AbortError. */
  put: (url: string, body: Blob, onProgress: (sent: number) => void, signal: AbortSignal) => Promise<string>
  complete: (id: Id, parts: PartTag[], signal: AbortSignal) => Promise<FileRecord>
  remove: (id: Id) => Promise<void>
}

export const transport: UploadTransport = {
  create: (meta, signal) => request('/api/files', { method: 'POST', body: meta, signal }),
  status: (id, signal) => request(`/api/files/${id}/upload`, { signal }),
  put: putPart,
  complete: (id, parts, signal) => request(`/api/files/${id}/complete`, { method: 'POST', body: { parts }, signal, timeoutMs: 120_000 }),
  remove: (id) => request(`/api/files/${id}`, { method: 'DELETE' }),
}

/** A connection on which nothing moves for this long is dead, whatever the browser believes. */
const STALL_MS = 45_000

function putPart(url: string, body: Blob, onProgress: (sent: number) => void, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest()
    let watchdog = 0
    const alive = () => {
      clearTimeout(watchdog)
      watchdog = window.setTimeout(() => xhr.abort(), STALL_MS)
    }
    const abort = () => xhr.abort()
    signal.addEventListener('abort', abort)
    xhr.upload.addEventListener('progress', (event) => {
      alive()
      onProgress(event.loaded)
    })
    xhr.addEventListener('loadend', () => {
      clearTimeout(watchdog)
      signal.removeEventListener('abort', abort)
      if (signal.aborted) return reject(signal.reason as Error)
      if (xhr.status === 0) return reject(new NetworkError('The connection was lost.'))
      const etag = xhr.getResponseHeader('ETag')
      if (xhr.status < 200 || xhr.status > 299) return reject(refusal(xhr))
      return etag ? resolve(etag) : reject(new ApiError(502, 'no_etag', 'The storage did not confirm the part.'))
    })
    if (signal.aborted) return reject(signal.reason as Error)
    xhr.open('PUT', url)
    alive()
    return xhr.send(body)
  })
}

/** The status is what counts; a store's XML and our problem details differ in the text. */
function refusal(xhr: XMLHttpRequest): ApiError {
  const after = Number(xhr.getResponseHeader('Retry-After') ?? Number.NaN)
  return new ApiError(xhr.status, `http_${xhr.status}`, 'The storage refused a part of the file.', null, Number.isFinite(after) ? after : null)
}

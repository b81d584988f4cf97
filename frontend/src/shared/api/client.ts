/**
 * The one place that calls fetch for JSON. Adds the CSRF header, turns problem details into ApiError and a lost network
 * into NetworkError. Leaves streams to stream/transport.ts and file parts to features/files.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly requestId: string | null = null,
    readonly retryAfterS: number | null = null,
    /** The whole problem object: `fields` of a 422, `message` of a 410, ... */
    readonly problem: Readonly<Record<string, unknown>> = {},
  ) {
    super(message)
  }

  /** Messages per field of a 422, empty otherwise. */
  get fields(): Record<string, string[]> {
    return (this.problem['fields'] as Record<string, string[]> | undefined) ?? {}
  }
}

/** No answer came: offline, server restarting, connection cut. Safe to retry with the same idempotency key. */
export class NetworkError extends Error {
  override readonly name = 'NetworkError'
}

export interface RequestOptions {
  method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
  timeoutMs?: number
}

/** Sent on the window when the server says that the session is over. */
export const SIGNED_OUT = 'parley:signed-out'

const DEFAULT_TIMEOUT_MS = 30_000

export function csrfToken(): string {
  return /(?:^|;\s*)csrftoken=([^;]+)/.exec(document.cookie)?.[1] ?? ''
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}

export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const { method = 'GET', body, signal, timeoutMs = DEFAULT_TIMEOUT_MS } = options
  const headers: Record<string, string> = { Accept: 'application/json', ...options.headers }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  if (method !== 'GET') headers['X-CSRFToken'] = csrfToken()
  const deadline = AbortSignal.timeout(timeoutMs)
  let response: Response
  try {
    response = await fetch(path, {
      method,
      headers,
      credentials: 'same-origin',
      signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  } catch (error) {
    if (signal?.aborted && isAbort(error)) throw error
    throw new NetworkError('The server did not answer. Check your connection.')
  }
  if (!response.ok) {
    const error = await toApiError(response)
    // Not every 401: allauth answers one to a sign-out that worked.
    if (error.code === 'not_authenticated') window.dispatchEvent(new Event(SIGNED_OUT))
    throw error
  }
  if (response.status === 204) return undefined as T
  try {
    return (await response.json()) as T
  } catch (error) {
    if (signal?.aborted && isAbort(error)) throw error
    throw new NetworkError('The answer was cut off on its way.')
  }
}

/** Read a failed response as problem details (RFC 9457); falls back to the status line. */
export async function toApiError(response: Response): Promise<ApiError> {
  let problem: Record<string, unknown> = {}
  try {
    const parsed: unknown = await response.json()
    if (parsed && typeof parsed === 'object') problem = parsed as Record<string, unknown>
  } catch {
    // A proxy's HTML page, or nothing: the status has to do.
  }
  const text = (key: string): string | null => (typeof problem[key] === 'string' ? (problem[key] as string) : null)
  const header = Number(response.headers.get('Retry-After') ?? Number.NaN)
  const retry = typeof problem['retry_after_s'] === 'number' ? problem['retry_after_s'] : header
  return new ApiError(
    response.status,
    text('code') ?? `http_${response.status}`,
    text('detail') ?? text('title') ?? `The server answered ${response.status}.`,
    text('request_id') ?? response.headers.get('x-request-id'),
    Number.isFinite(retry) ? retry : null,
    problem,
  )
}

/** What to tell a person about any thrown value. */
export function describeError(error: unknown): string {
  if (error instanceof ApiError || error instanceof NetworkError) return error.message
  return 'Something went wrong. Try again.'
}

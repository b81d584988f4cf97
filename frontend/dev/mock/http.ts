/** Small HTTP helpers of the mock server. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'

export interface Request {
  method: string
  path: string
  query: URLSearchParams
  headers: IncomingHttpHeaders
  bytes: Buffer
  json: Record<string, unknown>
  raw: IncomingMessage
  response: ServerResponse
}

/** A handler answers with a value (sent as JSON), null (it wrote the response itself) or undefined (not its path). */
export interface Answer {
  status: number
  body?: unknown
}
export const ok = (body: unknown): Answer => ({ status: 200, body })
export const created = (body: unknown): Answer => ({ status: 201, body })
export const empty: Answer = { status: 204 }

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly extra: Record<string, unknown> = {},
  ) {
    super(message)
  }
}

export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

export function sendJson(response: ServerResponse, { status, body }: Answer): void {
  response.statusCode = status
  if (body === undefined) return void response.end()
  response.setHeader('Content-Type', 'application/json')
  response.end(JSON.stringify(body))
}

export function sendProblem(response: ServerResponse, error: unknown): void {
  const problem = error instanceof Problem ? error : new Problem(500, 'internal', String(error))
  if (!(error instanceof Problem)) console.error(error)
  if (response.headersSent) return void response.end()
  response.statusCode = problem.status
  response.setHeader('Content-Type', 'application/problem+json')
  const retry = problem.extra['retry_after_s']
  if (typeof retry === 'number') response.setHeader('Retry-After', String(retry))
  const { status, code, message, extra } = problem
  response.end(JSON.stringify({ type: 'about:blank', title: code, status, code, detail: message, request_id: 'mock', ...extra }))
}

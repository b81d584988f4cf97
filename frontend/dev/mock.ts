/**
 * Development only: a Vite plugin that speaks the server's contract from memory, so that pages can be seen alone.
 * Words in a question steer it: "queue", "fail", "overload", "reconstruct", "long", "slow", "cite", "table", "code", "empty".
 * PARLEY_MOCK=signed-out | setup | open | limited | loading | many | files (comma list) sets the scene.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Plugin, PreviewServer, ViteDevServer } from 'vite'
import { handleConversations } from './mock/conversations.ts'
import { handleFiles } from './mock/files.ts'
import { Problem, readBody, sendJson, sendProblem, type Request } from './mock/http.ts'
import { handleRuns } from './mock/runs.ts'
import { handleSite } from './mock/site.ts'
import { acceptSocket } from './mock/socket.ts'
import { createState } from './mock/state.ts'

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
const PATHS = /^\/(api|_allauth|storage)\//

export function mockBackend(): Plugin {
  const state = createState(new Set((process.env['PARLEY_MOCK'] ?? '').split(',')))
  const handlers = [handleSite, handleConversations, handleRuns, handleFiles]

  async function handle(raw: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(raw.url ?? '/', 'http://mock')
    const upload = url.pathname.startsWith('/storage/')
    const body = await readBody(raw)
    const request: Request = {
      method: raw.method ?? 'GET',
      path: url.pathname,
      query: url.searchParams,
      headers: raw.headers,
      bytes: body,
      json: upload || body.length === 0 ? {} : (JSON.parse(body.toString('utf8')) as Record<string, unknown>),
      raw,
      response,
    }
    for (const handler of handlers) {
      const answer = handler(state, request)
      if (answer === undefined) continue
      if (answer !== null) sendJson(response, answer)
      return
    }
    throw new Problem(404, 'not_found', 'There is nothing at this address.')
  }

  function serve(server: ViteDevServer | PreviewServer): void {
    server.middlewares.use((request, response, next) => {
      if (!PATHS.test(request.url ?? '')) return next()
      handle(request, response).catch((error: unknown) => sendProblem(response, error))
    })
    server.httpServer?.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
      if (request.url?.startsWith('/ws/notifications')) acceptSocket(state, request, socket)
    })
  }

  return {
    name: 'parley-mock-backend',
    configureServer: serve,
    configurePreviewServer(server) {
      // The built page must live under the policy that the server sends; the development server injects scripts.
      server.middlewares.use((_request, response, next) => {
        response.setHeader('Content-Security-Policy', POLICY)
        next()
      })
      serve(server)
    },
  }
}

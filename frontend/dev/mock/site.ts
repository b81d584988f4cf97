/** Mock of site, session, profile, keys and models. */
import type { ApiKey } from '../../src/shared/api/types.ts'
import { created, empty, ok, Problem, type Answer, type Request } from './http.ts'
import { id, now, type State } from './state.ts'

export function handleSite(state: State, request: Request): Answer | null | undefined {
  const { method, path } = request
  request.response.setHeader('Set-Cookie', 'csrftoken=mock; Path=/; SameSite=Lax')
  if (path === '/api/site') return ok(site(state))
  if (path.startsWith('/_allauth/browser/v1/')) return session(state, request)
  if (!state.signedIn && path.startsWith('/api/')) throw new Problem(401, 'not_authenticated', 'Sign in to continue.')
  if (path === '/api/me') {
    if (method === 'PATCH') state.name = String(request.json['name'] ?? state.name)
    return ok(me(state))
  }
  if (path === '/api/models') return ok({ results: models(state), default: 'auto' })
  if (path.startsWith('/api/keys')) return keys(state, request)
  return undefined
}

const site = (state: State) => ({
  name: 'Parley',
  version: '0.1.0',
  setup_needed: state.setupNeeded,
  signup: state.scene.has('open') ? 'open' : 'first',
  needs_https: state.scene.has('open'),
  mail: state.scene.has('open'),
})

const me = (state: State) => ({
  user: { id: 'u1', email: 'ada@example.org', name: state.name, is_operator: true },
  organization: { id: 'o1', name: 'Personal', role: 'owner', tier: 'plus' },
})

function models(state: State) {
  const passed = (Date.now() - state.startedAt) / 1000
  return state.models.map((model) =>
    model.state === 'loading' ? { ...model, eta_s: Math.max(1, Math.round(45 - passed)) } : model,
  )
}

function session(state: State, { method, path, json }: Request): Answer {
  const user = { id: 'u1', email: String(json['email'] ?? 'ada@example.org'), display: state.name, has_usable_password: true }
  const signedIn = { status: 200, data: { user, methods: [] }, meta: { is_authenticated: true } }
  const anonymous = { status: 401, data: { flows: [{ id: 'login' }, { id: 'signup' }] }, meta: { is_authenticated: false } }
  const refuse = (param: string, code: string, message: string): Answer => ({
    status: 400,
    body: { status: 400, errors: [{ message, code, param }] },
  })
  if (path.endsWith('/auth/session')) {
    if (method === 'DELETE') state.signedIn = false
    return { status: state.signedIn ? 200 : 401, body: state.signedIn ? signedIn : anonymous }
  }
  if (path.endsWith('/auth/login')) {
    if (state.scene.has('limited')) throw new Problem(429, 'rate_limited', 'Too many attempts.', { retry_after_s: 42 })
    const wrong = 'The email address and/or password you specified are not correct.'
    if (json['password'] === 'wrong') return refuse('password', 'email_password_mismatch', wrong)
    state.signedIn = true
    return ok(signedIn)
  }
  if (path.endsWith('/auth/signup')) {
    if (String(json['password']).length < 8) return refuse('password', 'password_too_short', 'This password is too short.')
    state.signedIn = true
    state.setupNeeded = false
    return ok(signedIn)
  }
  return ok({ status: 200 })
}

function keys(state: State, { method, path, json }: Request): Answer {
  if (method === 'POST') {
    const days = json['expires_in_days']
    const key: ApiKey = {
      id: id(),
      name: String(json['name']),
      prefix: 'pk_9fK2',
      scopes: ['full'],
      created_at: now(),
      last_used_at: null,
      expires_at: typeof days === 'number' ? now(-days * 86_400) : null,
    }
    state.keys.set(key.id, key)
    return created({ ...key, key: 'pk_9fK2mockmockmockmockmockmockmockmock' })
  }
  if (method === 'DELETE') {
    state.keys.delete(path.split('/')[3] ?? '')
    return empty
  }
  return ok({ results: [...state.keys.values()], next: null })
}

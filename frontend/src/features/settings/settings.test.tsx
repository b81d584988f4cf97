import { render, screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { clearResources, type ApiKey, type Me, type Site } from '@/shared/api'
import { setTheme } from '@/shared/hooks'
import SettingsPage from '.'

const ME: Me = {
  user: { id: 'u', email: 'ada@example.org', name: 'Ada', is_operator: true },
  organization: { id: 'o', name: 'Personal', role: 'owner', tier: 'free' },
}
const SITE: Site = { name: 'Parley', version: '0.1.0', setup_needed: false, signup: 'first', needs_https: false, mail: false }
const KEY: ApiKey = { id: 'k1', name: 'report', scopes: ['full'], prefix: 'pk_ab', created_at: '2026-01-01T00:00:00Z', last_used_at: null, expires_at: '2026-01-08T00:00:00Z' }

let calls: { method: string; path: string; body: unknown }[] = []
let keys: ApiKey[] = []
let fail: Record<string, [status: number, body: unknown]> = {}

function answer(method: string, path: string, body: Record<string, unknown>): [number, unknown] {
  const failure = fail[`${method} ${path}`]
  if (failure) return failure
  if (path === '/api/me') return [200, { ...ME, user: { ...ME.user, name: body['name'] } }]
  if (path === '/api/models') {
    const model = { id: 'm', name: 'SmolLM2 135M', state: 'ready', eta_s: null, demo: true, context_length: 8192, note: '', replicas: { ready: 1, total: 1 } }
    return [200, { results: [model], default: 'auto' }]
  }
  if (path.startsWith('/_allauth')) return method === 'DELETE' ? [401, { meta: { is_authenticated: false } }] : [200, {}]
  if (method === 'POST') {
    keys = [...keys, { ...KEY, id: 'k2', name: String(body['name']), expires_at: null }]
    return [201, { ...keys.at(-1), key: 'pk_abSECRET' }]
  }
  if (method === 'DELETE') keys = []
  return method === 'DELETE' ? [204, null] : [200, { results: keys, next: null }]
}

beforeEach(() => {
  calls = []
  keys = [KEY]
  fail = {}
  HTMLDialogElement.prototype.showModal ??= function showModal(this: HTMLDialogElement) {
    this.open = true
  }
  HTMLDialogElement.prototype.close ??= function close(this: HTMLDialogElement) {
    this.open = false
  }
  Element.prototype.scrollIntoView = () => undefined
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    const method = init.method ?? 'GET'
    const body = init.body ? (JSON.parse(String(init.body)) as Record<string, unknown>) : {}
    calls.push({ method, path, body })
    const [status, result] = answer(method, path, body)
    return new Response(status === 204 ? null : JSON.stringify(result), { status })
  })
})

afterEach(() => {
  clearResources()
  setTheme('system')
  vi.unstubAllGlobals()
})

function show(section: string, change: Partial<Parameters<typeof SettingsPage>[0]> = {}) {
  const props = { me: ME, site: SITE, section, onSection: vi.fn<() => void>(), onMeChange: vi.fn<(me: Me) => void>(), onSignedOut: vi.fn<() => void>(), ...change }
  render(<SettingsPage {...props} />)
  return props
}

test('the name is saved, a refusal stands at the field', async () => {
  const { onMeChange } = show('')
  const field = screen.getByLabelText('Name')
  fail['PATCH /api/me'] = [422, { code: 'invalid', detail: 'Check the fields.', fields: { name: ['Too long.'] } }]
  await userEvent.type(field, ' Lovelace{Enter}')
  expect(await screen.findByText('Too long.')).toBeTruthy()
  fail = {}
  await userEvent.type(field, '{Enter}')
  await waitFor(() => expect(onMeChange).toHaveBeenCalledWith({ ...ME, user: { ...ME.user, name: 'Ada Lovelace' } }))
})

test('the password is changed, a wrong one is told at its field', async () => {
  show('')
  await userEvent.click(screen.getByRole('button', { name: 'Change password' }))
  fail['POST /_allauth/browser/v1/account/password/change'] = [400, { errors: [{ code: 'enter_current_password', message: '…', param: 'current_password' }] }]
  await userEvent.type(screen.getByLabelText('Current password'), 'nope')
  await userEvent.type(screen.getByLabelText('New password'), 'three or four words{Enter}')
  expect(await screen.findByText('This is not your current password.')).toBeTruthy()
  fail = {}
  await userEvent.click(screen.getByRole('button', { name: 'Change password' }))
  await waitFor(() => expect(screen.queryByLabelText('New password')).toBeNull())
  expect(calls.at(-1)?.body).toEqual({ current_password: 'nope', new_password: 'three or four words' })
})

test('signing out tells the shell', async () => {
  const { onSignedOut } = show('')
  await userEvent.click(screen.getByRole('button', { name: 'Sign out' }))
  await waitFor(() => expect(onSignedOut).toHaveBeenCalledOnce())
})

test('a theme is chosen', async () => {
  show('appearance')
  await userEvent.click(screen.getByRole('radio', { name: 'Dark' }))
  expect(document.documentElement.dataset['theme']).toBe('dark')
  expect(screen.getByRole<HTMLInputElement>('radio', { name: 'Dark' }).checked).toBe(true)
})

test('a key is made, shown once, and revoked', async () => {
  show('keys')
  expect(await screen.findByText(/^Expired/)).toBeTruthy()
  await userEvent.click(screen.getByRole('button', { name: 'New key' }))
  const dialog = screen.getByRole('dialog')
  await userEvent.type(within(dialog).getByLabelText('Name'), 'nightly')
  await userEvent.click(within(dialog).getByRole('radio', { name: 'Never' }))
  await userEvent.click(within(dialog).getByRole('button', { name: 'Make the key' }))
  expect(await screen.findByText('pk_abSECRET')).toBeTruthy()
  expect(calls.find((call) => call.method === 'POST')?.body).toEqual({ name: 'nightly' })
  await userEvent.click(screen.getByRole('button', { name: 'Done' }))
  expect(screen.queryByText('pk_abSECRET')).toBeNull()
  expect(await screen.findByText('nightly')).toBeTruthy()
  await userEvent.click(screen.getByRole('button', { name: 'Revoke nightly' }))
  await userEvent.click(screen.getByRole('button', { name: 'Revoke' }))
  expect(await screen.findByText('There are no keys yet.')).toBeTruthy()
  expect(calls.some((call) => call.method === 'DELETE' && call.path === '/api/keys/k2')).toBe(true)
})

test('a chosen lifetime is sent', async () => {
  show('keys')
  await userEvent.click(await screen.findByRole('button', { name: 'New key' }))
  await userEvent.type(screen.getByLabelText('Name'), 'x')
  await userEvent.click(screen.getByRole('button', { name: 'Make the key' }))
  await screen.findByText('pk_abSECRET')
  expect(calls.find((call) => call.method === 'POST')?.body).toEqual({ name: 'x', expires_in_days: 90 })
})

test.each([
  [true, true],
  [false, false],
])('about: operator %s sees the way to the administration %s', async (isOperator, offered) => {
  show('about', { me: { ...ME, user: { ...ME.user, is_operator: isOperator } } })
  expect(await screen.findByText(/small demonstration model/)).toBeTruthy()
  expect(screen.getByText('Parley 0.1.0')).toBeTruthy()
  expect(screen.queryByRole('link', { name: 'Administration' }) !== null).toBe(offered)
})

test('an unknown section shows the first', () => {
  show('nonsense')
  expect(screen.getByRole('heading', { level: 2 }).textContent).toBe('Account')
})

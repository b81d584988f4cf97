import { render, screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Site } from '@/shared/api'
import AuthPage from '.'
import { AuthError, signOut } from './allauth'
import { passwordHint } from './password'
import SessionExpired from './SessionExpired'

const SITE: Site = { name: 'Parley', version: '0.1.0', setup_needed: false, signup: 'first', needs_https: false, mail: false }

interface Call {
  method: string
  path: string
  body: unknown
}

let calls: Call[] = []
let answers: [status: number, body: unknown, headers?: Record<string, string>][] = []

beforeEach(() => {
  calls = []
  answers = []
  history.replaceState(null, '', '/')
  HTMLDialogElement.prototype.showModal ??= function showModal(this: HTMLDialogElement) {
    this.open = true
  }
  HTMLDialogElement.prototype.close ??= function close(this: HTMLDialogElement) {
    this.open = false
  }
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    calls.push({ method: init.method ?? 'GET', path, body: init.body ? JSON.parse(String(init.body)) : undefined })
    const [status, body, headers] = answers.shift() ?? [200, { status: 200, meta: { is_authenticated: true } }]
    return new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json', ...headers } })
  })
})

afterEach(() => vi.unstubAllGlobals())

const refused = (code: string, message: string, param?: string) => [400, { status: 400, errors: [{ code, message, param }] }] as [number, unknown]

describe('the sign-in page', () => {
  test('signs in', async () => {
    const onSignedIn = vi.fn<() => void>()
    render(<AuthPage site={SITE} onSignedIn={onSignedIn} />)
    expect(document.activeElement).toBe(screen.getByLabelText('Email'))
    await userEvent.type(screen.getByLabelText('Email'), ' ada@example.org')
    await userEvent.type(screen.getByLabelText('Password'), 'correct horse{Enter}')
    await waitFor(() => expect(onSignedIn).toHaveBeenCalledOnce())
    expect(calls).toEqual([{ method: 'POST', path: '/_allauth/browser/v1/auth/login', body: { email: 'ada@example.org', password: 'correct horse' } }])
  })

  test('says when the two do not go together, and puts the cursor back', async () => {
    answers = [refused('email_password_mismatch', 'The email address and/or password you specified are not correct.', 'password')]
    render(<AuthPage site={SITE} onSignedIn={() => expect.unreachable()} />)
    await userEvent.type(screen.getByLabelText('Email'), 'ada@example.org')
    await userEvent.type(screen.getByLabelText('Password'), 'wrong{Enter}')
    expect((await screen.findByRole('alert')).textContent).toBe('This email address and password do not go together.')
    expect(document.activeElement).toBe(screen.getByLabelText('Password'))
  })

  test('shows an error at its field', async () => {
    answers = [refused('invalid', 'Enter a valid email address.', 'email')]
    render(<AuthPage site={SITE} onSignedIn={() => expect.unreachable()} />)
    await userEvent.type(screen.getByLabelText('Email'), 'ada@exampleorg')
    await userEvent.type(screen.getByLabelText('Password'), 'x{Enter}')
    const field = screen.getByLabelText('Email')
    await waitFor(() => expect(field.getAttribute('aria-invalid')).toBe('true'))
    expect(document.getElementById(field.getAttribute('aria-describedby') ?? '')?.textContent).toBe('Enter a valid email address.')
    expect(document.activeElement).toBe(field)
  })

  test('counts down after too many attempts', async () => {
    answers = [[429, { status: 429 }, { 'Retry-After': '30' }]]
    render(<AuthPage site={SITE} onSignedIn={() => expect.unreachable()} />)
    await userEvent.type(screen.getByLabelText('Email'), 'ada@example.org')
    await userEvent.type(screen.getByLabelText('Password'), 'x{Enter}')
    expect((await screen.findByRole('alert')).textContent).toContain('Try again in 30\u00A0s.')
    expect(screen.getByRole<HTMLButtonElement>('button', { name: 'Sign in' }).disabled).toBe(true)
    await userEvent.type(screen.getByLabelText('Password'), '{Enter}')
    expect(calls).toHaveLength(1)
  })

  test('shows the password on request', async () => {
    render(<AuthPage site={SITE} onSignedIn={() => undefined} />)
    const field = screen.getByLabelText<HTMLInputElement>('Password')
    await userEvent.click(screen.getByRole('button', { name: 'Show password' }))
    expect(field.type).toBe('text')
    await userEvent.click(screen.getByRole('button', { name: 'Hide password' }))
    expect(field.type).toBe('password')
  })

  test('makes the first account of a new server', async () => {
    const onSignedIn = vi.fn<() => void>()
    answers = [refused('password_too_common', 'This password is too common.', 'password')]
    render(<AuthPage site={{ ...SITE, setup_needed: true }} onSignedIn={onSignedIn} />)
    expect(screen.getByRole('heading').textContent).toBe('Create the operator account')
    const password = screen.getByLabelText('Password')
    expect(password.getAttribute('autocomplete')).toBe('new-password')
    await userEvent.type(screen.getByLabelText('Email'), 'ada@example.org')
    await userEvent.type(password, 'password12{Enter}')
    expect(await screen.findByText('This password is too common.')).toBeTruthy()
    await userEvent.type(password, 'a longer pass phrase{Enter}')
    await waitFor(() => expect(onSignedIn).toHaveBeenCalledOnce())
    expect(calls[1]?.path).toBe('/_allauth/browser/v1/auth/signup')
  })

  test.each([
    ['first', false],
    ['open', true],
  ] as const)('sign-up %s', (signup, offered) => {
    render(<AuthPage site={{ ...SITE, signup }} onSignedIn={() => undefined} />)
    expect(screen.queryByRole('button', { name: 'Create an account' }) !== null).toBe(offered)
  })

  test('sets a new password from the link in a mail', async () => {
    history.replaceState(null, '', '/reset-password/2-d0rn-abcdef')
    answers = [[401, { status: 401, meta: { is_authenticated: false }, data: { flows: [] } }]]
    render(<AuthPage site={{ ...SITE, mail: true }} onSignedIn={() => expect.unreachable()} />)
    await userEvent.type(screen.getByLabelText('New password'), 'a longer pass phrase{Enter}')
    expect(await screen.findByText('Your new password is set. Sign in with it.')).toBeTruthy()
    expect(calls[0]?.body).toEqual({ key: '2-d0rn-abcdef', password: 'a longer pass phrase' })
    expect(location.pathname).toBe('/sign-in')
  })
})

describe('signing out', () => {
  test('takes the 401 that allauth answers for success', async () => {
    answers = [[401, { status: 401, meta: { is_authenticated: false }, data: { flows: [] } }]]
    await expect(signOut()).resolves.toBeUndefined()
  })

  test('fails when the server does', async () => {
    answers = [[503, { status: 503, code: 'overloaded', detail: 'Busy.' }]]
    await expect(signOut()).rejects.toBeInstanceOf(AuthError)
  })
})

test('an ended session asks for the password only', async () => {
  const onSignedIn = vi.fn<() => void>()
  render(<SessionExpired email="ada@example.org" onSignedIn={onSignedIn} onLeave={() => undefined} />)
  const email = screen.getByLabelText<HTMLInputElement>('Email')
  expect([email.value, email.readOnly]).toEqual(['ada@example.org', true])
  await userEvent.type(screen.getByLabelText('Password'), 'correct horse{Enter}')
  await waitFor(() => expect(onSignedIn).toHaveBeenCalledOnce())
})

test.each([
  ['', 'At least 10 characters. Three or four words are easy to remember.'],
  ['abcdefghi', '1 more character.'],
  ['abcdefghij', 'Long enough.'],
  ['ada.lovelace', 'This is too close to your email address.'],
  ['ada.lovelace1815', 'This is too close to your email address.'],
])('hint for %j', (password, expected) => expect(passwordHint(password, 'ada.lovelace@example.org')).toBe(expected))

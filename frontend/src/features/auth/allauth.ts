/**
 * Sign-in, sign-up, sign-out and passwords over django-allauth's browser API. Knows its error format; everything else of
 * the server speaks problem details.
 */
import { ApiError, NetworkError, request } from '@/shared/api'

const BASE = '/_allauth/browser/v1'
export type AuthField = 'email' | 'password' | 'current_password' | 'new_password' | 'key'

interface AllauthError {
  message: string
  code: string
  param?: string
}

/** Messages for a form: at the field they belong to, or above it. */
export class AuthError extends Error {
  override readonly name = 'AuthError'
  constructor(
    readonly code: string,
    readonly fields: Readonly<Partial<Record<AuthField, string>>>,
    readonly general: string | null,
    readonly retryAfterS: number | null = null,
  ) {
    super(general ?? Object.values(fields)[0] ?? 'Refused.')
  }
}

export async function signIn(email: string, password: string): Promise<void> {
  try {
    await send('POST', '/auth/login', { email, password })
  } catch (error) {
    // Another tab was faster; the session is there, and that is what was asked for.
    if (error instanceof AuthError && error.code === 'http_409') return
    throw error
  }
}

export async function signUp(email: string, password: string): Promise<void> {
  await send('POST', '/auth/signup', { email, password })
}

/** Ends the session here and tells the server. Also fine when it had ended already. */
export async function signOut(): Promise<void> {
  await send('DELETE', '/auth/session')
}

export async function requestReset(email: string): Promise<void> {
  await send('POST', '/auth/password/request', { email })
}

export async function resetPassword(key: string, password: string): Promise<void> {
  await send('POST', '/auth/password/reset', { key, password })
}

export async function changePassword(current: string, next: string): Promise<void> {
  await send('POST', '/account/password/change', { current_password: current, new_password: next })
}

/** allauth answers 401 wherever the result is "nobody is signed in", which is no failure of a sign-out or a reset. */
async function send(method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<void> {
  try {
    await request(BASE + path, { method, ...(body === undefined ? {} : { body }) })
  } catch (error) {
    if (error instanceof ApiError && error.status === 401 && meansSignedOut(error)) return
    throw toAuthError(error)
  }
}

function meansSignedOut(error: ApiError): boolean {
  const meta = error.problem['meta'] as { is_authenticated?: boolean } | undefined
  return meta?.is_authenticated === false && !Array.isArray(error.problem['errors'])
}

export function toAuthError(error: unknown): AuthError {
  if (error instanceof AuthError) return error
  if (error instanceof NetworkError) return new AuthError('network', {}, error.message)
  if (!(error instanceof ApiError)) return new AuthError('unknown', {}, 'Something went wrong. Try again.')
  if (error.status === 429) {
    return new AuthError('rate_limited', {}, 'Too many attempts.', error.retryAfterS ?? 60)
  }
  const errors = (error.problem['errors'] as AllauthError[] | undefined) ?? []
  if (errors.length === 0) {
    const csrf = error.status === 403 ? 'This page is out of date. Reload it and try again.' : error.message
    return new AuthError(error.code, {}, csrf)
  }
  const fields: Partial<Record<AuthField, string>> = {}
  const general: string[] = []
  for (const entry of errors) {
    const field = entry.param as AuthField | undefined
    if (field && entry.code !== 'email_password_mismatch') fields[field] = join(fields[field], wording(entry))
    else general.push(wording(entry))
  }
  return new AuthError(errors[0]?.code ?? error.code, fields, general.length > 0 ? general.join(' ') : null)
}

const join = (first: string | undefined, second: string): string => (first ? `${first} ${second}` : second)

/** Plainer words where allauth's are long-winded; its own otherwise. */
const WORDS: Readonly<Record<string, string>> = {
  email_password_mismatch: 'This email address and password do not go together.',
  email_taken: 'There is already an account with this email address.',
  too_many_login_attempts: 'Too many failed attempts. Wait a few minutes, then try again.',
  enter_current_password: 'This is not your current password.',
  invalid_password_reset: 'This link is no longer valid. Ask for a new one.',
  required: 'Please fill this in.',
}

function wording(error: AllauthError): string {
  return WORDS[error.code] ?? error.message
}

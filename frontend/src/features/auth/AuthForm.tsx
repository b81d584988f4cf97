import { useEffect, useRef, useState, type FormEvent, type ReactNode } from 'react'
import { Button, Field, Notice, PasswordField } from '@/shared/ui'
import styles from './auth.module.css'
import { passwordHint } from './password'
import type { AuthFormState } from './useAuthForm'

export interface AuthFormProps {
  form: AuthFormState
  action: string
  /** Sets what the password manager is asked for and which hints are shown. */
  kind: 'sign-in' | 'new-account' | 'email-only' | 'new-password'
  /** A known address that is not to be changed. */
  fixedEmail?: string
  initialEmail?: string
  aside?: ReactNode
  onSubmit: (email: string, password: string) => void
}

export function AuthForm({ form, action, kind, fixedEmail, initialEmail = '', aside, onSubmit }: AuthFormProps) {
  const [email, setEmail] = useState(fixedEmail ?? initialEmail)
  const [password, setPassword] = useState('')
  const element = useRef<HTMLFormElement>(null)
  const isNew = kind === 'new-account' || kind === 'new-password'
  const { error, waitS } = form

  useEffect(() => {
    // After a refusal the first field with an error takes the focus; the password is the likely culprit otherwise.
    if (!error) return
    const root = element.current
    const field = root?.querySelector<HTMLInputElement>('[aria-invalid]') ?? root?.querySelector<HTMLInputElement>('[name="password"]')
    field?.focus()
    field?.select()
  }, [error])

  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!form.busy && waitS === 0) onSubmit(email.trim(), password)
  }
  return (
    <form ref={element} className={styles.form} onSubmit={submit} method="post" action="/sign-in">
      {error?.general && (
        <Notice tone="danger" live>
          {error.general}
          {waitS > 0 && ` Try again in ${waitS}\u00A0s.`}
        </Notice>
      )}
      {kind !== 'new-password' && (
        <Field
          label="Email"
          name="email"
          type="email"
          inputMode="email"
          autoComplete={kind === 'new-account' ? 'email' : 'username'}
          autoCapitalize="off"
          spellCheck={false}
          required
          maxLength={254}
          value={email}
          readOnly={fixedEmail !== undefined}
          // The page is only this form, so the focus begins here.
          // oxlint-disable-next-line jsx-a11y/no-autofocus
          autoFocus={fixedEmail === undefined}
          error={error?.fields.email}
          onChange={(event) => setEmail(event.target.value)}
        />
      )}
      {kind !== 'email-only' && (
        <PasswordField
          label={kind === 'new-password' ? 'New password' : 'Password'}
          name="password"
          autoComplete={isNew ? 'new-password' : 'current-password'}
          required
          maxLength={1024}
          value={password}
          // oxlint-disable-next-line jsx-a11y/no-autofocus
          autoFocus={fixedEmail !== undefined || kind === 'new-password'}
          aside={aside}
          error={error?.fields.password ?? error?.fields.key}
          hint={isNew ? passwordHint(password, email) : undefined}
          onChange={(event) => setPassword(event.target.value)}
        />
      )}
      <Button type="submit" variant="primary" busy={form.busy} disabled={waitS > 0} className={styles.submit}>
        {action}
      </Button>
    </form>
  )
}

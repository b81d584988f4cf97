import { useState, type FormEvent } from 'react'
import { changePassword, signOut, type AuthField } from '@/features/auth/allauth'
import { passwordHint } from '@/features/auth/password'
import { useAuthForm } from '@/features/auth/useAuthForm'
import { ApiError, describeError, request, type Me } from '@/shared/api'
import { Button, Field, Notice, PasswordField, toast } from '@/shared/ui'
import { IconSignOut } from '@/shared/ui/icons'
import type { SettingsPageProps } from '.'
import styles from './settings.module.css'

export function Account({ me, onMeChange, onSignedOut }: SettingsPageProps) {
  return (
    <>
      <Profile me={me} onMeChange={onMeChange} />
      <Password />
      <SignOut onSignedOut={onSignedOut} />
    </>
  )
}

const ROLES = { owner: 'Owner', admin: 'Administrator', member: 'Member' } as const

function Profile({ me, onMeChange }: { me: Me; onMeChange: (me: Me) => void }) {
  const [name, setName] = useState(me.user.name)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<string | null>(null)
  const save = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      onMeChange(await request<Me>('/api/me', { method: 'PATCH', body: { name: name.trim() } }))
      toast('Saved', { tone: 'success' })
    } catch (thrown) {
      setError((thrown instanceof ApiError && thrown.fields['name']?.[0]) || describeError(thrown))
    } finally {
      setBusy(false)
    }
  }
  return (
    <form className={styles.block} onSubmit={(event) => void save(event)}>
      <Field label="Name" name="name" autoComplete="name" maxLength={120} value={name} error={error} hint="How Parley greets you." onChange={(event) => setName(event.target.value)} />
      <Field label="Email" type="email" value={me.user.email} readOnly hint={`${ROLES[me.organization.role]} of ${me.organization.name || 'your organization'}${me.user.is_operator ? '; operator of this server' : ''}`} />
      <div className={styles.actions}>
        <Button type="submit" variant="primary" busy={busy} disabled={name.trim() === me.user.name}>
          Save
        </Button>
      </div>
    </form>
  )
}

function Password() {
  const [open, setOpen] = useState(false)
  if (open) return <PasswordForm onDone={() => setOpen(false)} />
  return (
    <div className={styles.row}>
      <div>
        <h3>Password</h3>
        <p>Changing it signs you out everywhere else.</p>
      </div>
      <Button onClick={() => setOpen(true)}>Change password</Button>
    </div>
  )
}

function PasswordForm({ onDone }: { onDone: () => void }) {
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const form = useAuthForm()
  const at = (field: AuthField) => form.error?.fields[field]
  const save = async (event: FormEvent) => {
    event.preventDefault()
    if (form.waitS > 0 || !(await form.submit(() => changePassword(current, next)))) return
    toast('Your password is changed', { tone: 'success' })
    onDone()
  }
  return (
    <form className={styles.block} onSubmit={(event) => void save(event)}>
      <h3>Change password</h3>
      {form.error?.general && (
        <Notice tone="danger" live>
          {form.error.general}
          {form.waitS > 0 && ` Try again in ${form.waitS}\u00A0s.`}
        </Notice>
      )}
      <PasswordField
        label="Current password"
        name="current-password"
        autoComplete="current-password"
        required
        // The form was opened to type here.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        value={current}
        error={at('current_password')}
        onChange={(event) => setCurrent(event.target.value)}
      />
      <PasswordField
        label="New password"
        name="new-password"
        autoComplete="new-password"
        required
        value={next}
        error={at('new_password')}
        hint={passwordHint(next, '')}
        onChange={(event) => setNext(event.target.value)}
      />
      <div className={styles.actions}>
        <Button onClick={onDone}>Cancel</Button>
        <Button type="submit" variant="primary" busy={form.busy} disabled={form.waitS > 0}>
          Change password
        </Button>
      </div>
    </form>
  )
}

function SignOut({ onSignedOut }: { onSignedOut: () => void }) {
  const [busy, setBusy] = useState(false)
  const leave = async () => {
    setBusy(true)
    try {
      await signOut()
      onSignedOut()
    } catch (error) {
      toast(`You are still signed in. ${error instanceof Error ? error.message : ''}`, { tone: 'error' })
      setBusy(false)
    }
  }
  return (
    <div className={styles.row}>
      <div>
        <h3>This session</h3>
        <p>Unsent text and unfinished uploads of this browser are removed when you sign out.</p>
      </div>
      <Button icon={<IconSignOut aria-hidden />} busy={busy} onClick={() => void leave()}>
        Sign out
      </Button>
    </div>
  )
}

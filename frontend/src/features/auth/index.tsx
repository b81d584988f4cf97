/**
 * Everything before a session exists: the first account of a new server, sign-in, sign-up where it is open, and a
 * forgotten password. Lazy-loaded by the shell.
 */
import { useState } from 'react'
import type { Site } from '@/shared/api'
import { Button, Notice } from '@/shared/ui'
import { requestReset, resetPassword, signIn, signUp } from './allauth'
import { AuthForm } from './AuthForm'
import styles from './auth.module.css'
import { useAuthForm } from './useAuthForm'

export interface AuthPageProps {
  site: Site
  /** Called after a session exists; the shell then loads /api/me. */
  onSignedIn: () => void
}

type Mode = 'setup' | 'sign-in' | 'sign-up' | 'forgot' | 'sent' | 'reset'

const RESET_PATH = /^\/reset-password\/([\w-]{8,200})$/

function firstMode(site: Site, path: string): Mode {
  if (site.setup_needed) return 'setup'
  if (RESET_PATH.test(path)) return 'reset'
  return path === '/sign-up' && site.signup === 'open' ? 'sign-up' : 'sign-in'
}

const TITLES: Record<Mode, string> = {
  setup: 'Create the operator account',
  'sign-in': 'Sign in',
  'sign-up': 'Create an account',
  forgot: 'Forgotten password',
  sent: 'Look at your mail',
  reset: 'Choose a new password',
}

const LEADS: Partial<Record<Mode, string>> = {
  setup: 'The first account runs this server: it manages people, models and limits. Everything stays on this machine.',
  forgot: 'We send a link to this address with which you can choose a new password.',
}

export default function AuthPage({ site, onSignedIn }: AuthPageProps) {
  const [mode, setMode] = useState(() => firstMode(site, location.pathname))
  const [email, setEmail] = useState('')
  const [note, setNote] = useState<string | null>(null)
  const form = useAuthForm()
  const go = (next: Mode) => {
    form.clear()
    setNote(null)
    setMode(next)
  }
  const submit = async (address: string, password: string) => {
    setEmail(address)
    const key = RESET_PATH.exec(location.pathname)?.[1] ?? ''
    if (!(await form.submit(() => work(mode, address, password, key)))) return
    if (mode === 'forgot') return go('sent')
    if (mode !== 'reset') return onSignedIn()
    history.replaceState(null, '', '/sign-in')
    go('sign-in')
    setNote('Your new password is set. Sign in with it.')
  }
  const onSubmit = (address: string, password: string) => void submit(address, password)
  return (
    <main className={styles.page}>
      <div className={styles.card}>
        <p className={styles.brand}>
          <Logo />
          {site.name}
        </p>
        <h1 className={styles.title}>{TITLES[mode]}</h1>
        {LEADS[mode] && <p className={styles.lead}>{LEADS[mode]}</p>}
        {site.needs_https && (
          <Notice tone="warn">This connection is not encrypted: others on the network could read your password. Open this page with https.</Notice>
        )}
        {note && <Notice live>{note}</Notice>}
        {mode === 'sent' ? (
          <Sent email={email} onBack={() => go('sign-in')} />
        ) : (
          <AuthForm
            key={mode}
            form={form}
            kind={KINDS[mode]}
            initialEmail={email}
            action={ACTIONS[mode]}
            aside={mode === 'sign-in' && site.mail && <LinkButton onClick={() => go('forgot')}>Forgotten?</LinkButton>}
            onSubmit={onSubmit}
          />
        )}
        <Switch mode={mode} site={site} onGo={go} />
      </div>
      <p className={styles.foot}>
        {site.name} {site.version}
      </p>
    </main>
  )
}

const KINDS = { setup: 'new-account', 'sign-in': 'sign-in', 'sign-up': 'new-account', forgot: 'email-only', reset: 'new-password' } as const
const ACTIONS = { setup: 'Create account', 'sign-in': 'Sign in', 'sign-up': 'Create account', forgot: 'Send the link', reset: 'Set password' } as const

function work(mode: Mode, email: string, password: string, key: string): Promise<void> {
  if (mode === 'forgot') return requestReset(email)
  if (mode === 'reset') return resetPassword(key, password)
  return mode === 'sign-in' ? signIn(email, password) : signUp(email, password)
}

function Switch({ mode, site, onGo }: { mode: Mode; site: Site; onGo: (mode: Mode) => void }) {
  if (mode === 'setup' || mode === 'sent') return null
  if (mode !== 'sign-in') {
    return (
      <p className={styles.switch}>
        <LinkButton onClick={() => onGo('sign-in')}>Back to sign-in</LinkButton>
      </p>
    )
  }
  if (site.signup === 'open') {
    return (
      <p className={styles.switch}>
        New here? <LinkButton onClick={() => onGo('sign-up')}>Create an account</LinkButton>
      </p>
    )
  }
  return <p className={styles.switch}>No account yet? Ask the operator of this server{site.mail ? '.' : '; also if you forgot your password.'}</p>
}

function Sent({ email, onBack }: { email: string; onBack: () => void }) {
  return (
    <>
      <Notice live>
        If <strong>{email}</strong> has an account, a link is on its way. It works for a few hours.
      </Notice>
      <Button onClick={onBack}>Back to sign-in</Button>
    </>
  )
}

function LinkButton(props: { onClick: () => void; children: string }) {
  return <button type="button" className={styles.link} {...props} />
}

function Logo() {
  return <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width={32} height={32} />
}

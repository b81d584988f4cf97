/** Decides what is on screen: start-up, sign-in, or the signed-in shell. */
import { Suspense, lazy, useEffect } from 'react'
import { emitSync } from '@/shared/api'
import { useStore } from '@/shared/hooks'
import { Button, Toasts } from '@/shared/ui'
import { ErrorBoundary } from './ErrorBoundary'
import { endSession, renewSession, sessionStore, startSession } from './session'
import { Shell } from './Shell'
import styles from './Shell.module.css'

const AuthPage = lazy(() => import('@/features/auth'))
const SessionExpired = lazy(() => import('@/features/auth/SessionExpired'))

export function App() {
  const { state, site, me, expired } = useStore(sessionStore)
  useEffect(() => {
    void startSession()
  }, [])
  return (
    <>
      <ErrorBoundary resetKey={state}>
        {state === 'starting' && <Splash />}
        {state === 'unreachable' && <Unreachable />}
        {state === 'anonymous' && site && (
          <Suspense fallback={<Splash />}>
            <AuthPage site={site} onSignedIn={() => void startSession()} />
          </Suspense>
        )}
        {state === 'signed-in' && site && me && <Shell site={site} me={me} />}
        {expired && me && (
          <Suspense>
            <SessionExpired
              email={me.user.email}
              onSignedIn={() => {
                renewSession()
                emitSync()
              }}
              onLeave={endSession}
            />
          </Suspense>
        )}
      </ErrorBoundary>
      <Toasts />
    </>
  )
}

function Splash() {
  return <div className={styles.splash} role="status" aria-label="Loading" />
}

/** The server is down or restarts: keep trying, quietly. */
function Unreachable() {
  useEffect(() => {
    const timer = setInterval(() => void startSession(), 3000)
    return () => clearInterval(timer)
  }, [])
  return (
    <div className={styles.center} role="alert">
      <h1 className={styles.centerTitle}>Parley does not answer</h1>
      <p>The server may be starting. This page tries again every few seconds; what you wrote before is kept.</p>
      <Button onClick={() => void startSession()}>Try now</Button>
    </div>
  )
}

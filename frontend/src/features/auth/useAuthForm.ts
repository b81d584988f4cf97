/** State of one sign-in form: busy, errors by field, and the wait after too many attempts. */
import { useEffect, useState } from 'react'
import { AuthError, toAuthError } from './allauth'

export interface AuthFormState {
  busy: boolean
  error: AuthError | null
  /** Whole seconds until another attempt makes sense, 0 when it does now. */
  waitS: number
  submit: (work: () => Promise<void>) => Promise<boolean>
  clear: () => void
}

export function useAuthForm(): AuthFormState {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<AuthError | null>(null)
  const [waitS, setWaitS] = useState(0)
  const waiting = waitS > 0
  useEffect(() => {
    if (!waiting) return
    const timer = setInterval(() => setWaitS((left) => Math.max(0, left - 1)), 1000)
    return () => clearInterval(timer)
  }, [waiting])
  const submit = async (work: () => Promise<void>): Promise<boolean> => {
    setBusy(true)
    setError(null)
    try {
      await work()
      return true
    } catch (thrown) {
      const found = toAuthError(thrown)
      setError(found)
      if (found.retryAfterS) setWaitS(Math.ceil(found.retryAfterS))
      return false
    } finally {
      setBusy(false)
    }
  }
  return { busy, error, waitS, submit, clear: () => setError(null) }
}

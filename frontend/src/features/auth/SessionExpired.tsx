/** Asks for the password again over a page that stays as it is, so that nothing typed is lost. */
import { Dialog } from '@/shared/ui'
import { signIn } from './allauth'
import { AuthForm } from './AuthForm'
import styles from './auth.module.css'
import { useAuthForm } from './useAuthForm'

export interface SessionExpiredProps {
  /** Of the person whose page this is. Somebody else must not see it, so the address is fixed. */
  email: string
  onSignedIn: () => void
  /** Leave the page as a signed-out person. */
  onLeave: () => void
}

export default function SessionExpired({ email, onSignedIn, onLeave }: SessionExpiredProps) {
  const form = useAuthForm()
  const submit = async (address: string, password: string) => {
    if (await form.submit(() => signIn(address, password))) onSignedIn()
  }
  return (
    <Dialog title="Sign in again" hideTitle onClose={() => undefined}>
      <div className={styles.expired}>
        <h3 className={styles.title}>Sign in again</h3>
        <p className={styles.lead}>Your session has ended. Your text and your place are kept; answers go on being written.</p>
        <AuthForm form={form} kind="sign-in" fixedEmail={email} action="Continue" onSubmit={(address, password) => void submit(address, password)} />
        <p className={styles.switch}>
          <button type="button" className={styles.link} onClick={onLeave}>
            Sign in as somebody else
          </button>
        </p>
      </div>
    </Dialog>
  )
}

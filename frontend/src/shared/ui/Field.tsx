/** A labelled input with its hint and its error, wired together for assistive software. */
import { useId, useState, type InputHTMLAttributes, type ReactNode, type Ref } from 'react'
import { IconButton } from './Button'
import styles from './Field.module.css'
import { IconError, IconHide, IconShow } from './icons'

export interface FieldProps extends Omit<InputHTMLAttributes<HTMLInputElement>, 'id'> {
  label: string
  hint?: ReactNode
  /** Shown in place of the hint and announced. */
  error?: string | null | undefined
  /** Beside the label, such as a link. */
  aside?: ReactNode
  /** Inside the box, after the text. */
  trailing?: ReactNode
  ref?: Ref<HTMLInputElement>
}

export function Field({ label, hint, error, aside, trailing, ...input }: FieldProps) {
  const id = useId()
  const note = error || hint ? `${id}-note` : undefined
  return (
    <div className={styles.field}>
      <div className={styles.head}>
        <label htmlFor={id} className={styles.label}>
          {label}
        </label>
        {aside}
      </div>
      <div className={styles.box} data-invalid={error ? true : undefined}>
        <input {...input} id={id} className={styles.input} aria-invalid={error ? true : undefined} aria-describedby={note} />
        {trailing && <div className={styles.trailing}>{trailing}</div>}
      </div>
      <div id={note} aria-live="polite">
        {error ? (
          <p className={styles.error}>
            <IconError aria-hidden />
            {error}
          </p>
        ) : (
          hint && <div className={styles.hint}>{hint}</div>
        )}
      </div>
    </div>
  )
}

/** Can be shown, and tells when caps lock is on. */
export function PasswordField(props: Omit<FieldProps, 'type' | 'trailing'>) {
  const [shown, setShown] = useState(false)
  const [caps, setCaps] = useState(false)
  const watch = (event: React.KeyboardEvent<HTMLInputElement>) => setCaps(event.getModifierState('CapsLock'))
  return (
    <Field
      {...props}
      type={shown ? 'text' : 'password'}
      spellCheck={false}
      autoCapitalize="off"
      autoCorrect="off"
      onKeyDown={watch}
      onKeyUp={watch}
      onBlur={() => setCaps(false)}
      hint={
        caps ? (
          <>
            {props.hint}
            <p className={styles.warn}>Caps Lock is on.</p>
          </>
        ) : (
          props.hint
        )
      }
      trailing={
        <IconButton size="s" label={shown ? 'Hide password' : 'Show password'} aria-pressed={shown} onClick={() => setShown(!shown)}>
          {shown ? <IconHide /> : <IconShow />}
        </IconButton>
      }
    />
  )
}

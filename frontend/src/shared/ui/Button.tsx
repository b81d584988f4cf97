import type { ButtonHTMLAttributes, ReactNode, Ref } from 'react'
import styles from './Button.module.css'
import { cx } from './cx'
import { Spinner } from './Spinner'

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: 'primary' | 'secondary' | 'ghost' | 'danger'
  size?: 'm' | 's'
  /** Shows a spinner, keeps the width and refuses clicks. */
  busy?: boolean
  icon?: ReactNode
  ref?: Ref<HTMLButtonElement>
}

export function Button({ variant = 'secondary', size = 'm', busy, icon, children, className, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      className={cx(styles.button, className)}
      data-variant={variant}
      data-size={size}
      data-busy={busy || undefined}
      aria-busy={busy || undefined}
      disabled={rest.disabled || busy}
    >
      {busy ? <Spinner /> : icon}
      {children && <span>{children}</span>}
    </button>
  )
}

export interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** Spoken name and tooltip. */
  label: string
  /** Keys of a shortcut, shown in the tooltip and told to assistive software. */
  shortcut?: string
  variant?: 'ghost' | 'solid'
  size?: 'm' | 's'
  ref?: Ref<HTMLButtonElement>
}

export function IconButton({ label, shortcut, variant = 'ghost', size = 'm', className, ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      title={shortcut ? `${label} (${shortcut})` : label}
      aria-label={label}
      aria-keyshortcuts={shortcut?.replace('Ctrl', 'Control')}
      {...rest}
      className={cx(styles.icon, className)}
      data-variant={variant}
      data-size={size}
    />
  )
}

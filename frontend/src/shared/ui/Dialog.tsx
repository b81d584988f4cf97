/** Modal dialogs on the browser's own <dialog>: it traps focus, makes the rest inert and gives focus back. */
import { useEffect, useId, useRef, type ReactNode } from 'react'
import { Button, IconButton } from './Button'
import { cx } from './cx'
import styles from './Dialog.module.css'
import { IconClose } from './icons'

export interface DialogProps {
  title: string
  onClose: () => void
  children: ReactNode
  /** `sheet` fills a phone's screen from below; `wide` is for viewers. */
  variant?: 'box' | 'wide' | 'sheet' | 'drawer'
  /** Keep the title for assistive software only. */
  hideTitle?: boolean
  footer?: ReactNode
  className?: string
}

export function Dialog({ title, onClose, children, variant = 'box', hideTitle, footer, className }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    const dialog = ref.current
    if (dialog && !dialog.open) dialog.showModal()
    return () => dialog?.close()
  }, [])
  return (
    // The backdrop click is an extra for pointers; Escape and the close button do the same for everybody.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions, jsx-a11y/click-events-have-key-events
    <dialog
      ref={ref}
      className={cx(styles.dialog, className)}
      data-variant={variant}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => {
        if (event.target === ref.current) onClose()
      }}
    >
      <div className={styles.frame}>
        <div className={cx(styles.head, hideTitle && styles.bare)}>
          <h2 id={titleId} className={hideTitle ? 'visually-hidden' : styles.title}>
            {title}
          </h2>
          {!hideTitle && (
            <IconButton label="Close" onClick={onClose}>
              <IconClose />
            </IconButton>
          )}
        </div>
        <div className={styles.body}>{children}</div>
        {footer && <div className={styles.foot}>{footer}</div>}
      </div>
    </dialog>
  )
}

export interface ConfirmProps {
  title: string
  children: ReactNode
  action: string
  danger?: boolean
  busy?: boolean
  onConfirm: () => void
  onClose: () => void
}

export function ConfirmDialog({ title, children, action, danger, busy, onConfirm, onClose }: ConfirmProps) {
  return (
    <Dialog
      title={title}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant={danger ? 'danger' : 'primary'} busy={busy ?? false} onClick={onConfirm}>
            {action}
          </Button>
        </>
      }
    >
      {children}
    </Dialog>
  )
}

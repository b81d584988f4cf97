import { useEffect, useRef, useState } from 'react'
import { useStore } from '../hooks/store'
import { Button, IconButton } from './Button'
import { IconClose, IconError, IconSuccess } from './icons'
import { dismissToast, toastStore, type Toast } from './toast'
import styles from './Toasts.module.css'

/** The region is always in the page, so that assistive software announces what is added to it. */
export function Toasts() {
  const toasts = useStore(toastStore)
  return (
    <div className={styles.region} role="status" aria-live="polite" aria-relevant="additions">
      {toasts.map((item) => (
        <ToastCard key={item.id} toast={item} />
      ))}
    </div>
  )
}

function ToastCard({ toast }: { toast: Toast }) {
  const [held, setHeld] = useState(false)
  const left = useRef(toast.durationMs)
  useEffect(() => {
    if (held) return
    const since = performance.now()
    const timer = setTimeout(() => dismissToast(toast.id), left.current)
    return () => {
      clearTimeout(timer)
      left.current = Math.max(1500, left.current - (performance.now() - since))
    }
  }, [held, toast.id])
  return (
    <div
      className={styles.card}
      data-tone={toast.tone}
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
    >
      {toast.tone === 'error' && <IconError aria-hidden />}
      {toast.tone === 'success' && <IconSuccess aria-hidden />}
      <span className={styles.text}>{toast.text}</span>
      {toast.action && (
        <Button
          size="s"
          variant="ghost"
          className={styles.action}
          onClick={() => {
            toast.action?.run()
            dismissToast(toast.id)
          }}
        >
          {toast.action.label}
        </Button>
      )}
      <IconButton label="Dismiss" size="s" className={styles.close} onClick={() => dismissToast(toast.id)}>
        <IconClose />
      </IconButton>
    </div>
  )
}

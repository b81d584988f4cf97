import type { ReactNode } from 'react'
import { IconError, IconInfo, IconWarning } from './icons'
import styles from './Notice.module.css'

export interface NoticeProps {
  tone?: 'info' | 'warn' | 'danger'
  children: ReactNode
  actions?: ReactNode
  /** Announced when it appears: for errors and changes of state, not for standing advice. */
  live?: boolean
  icon?: ReactNode
}

/** A calm box with one message, for errors and standing facts inside a page. */
export function Notice({ tone = 'info', children, actions, live, icon }: NoticeProps) {
  const Icon = { info: IconInfo, warn: IconWarning, danger: IconError }[tone]
  return (
    <div className={styles.notice} data-tone={tone} role={live ? (tone === 'danger' ? 'alert' : 'status') : undefined}>
      <span className={styles.icon}>{icon ?? <Icon aria-hidden />}</span>
      <div className={styles.text}>{children}</div>
      {actions && <div className={styles.actions}>{actions}</div>}
    </div>
  )
}

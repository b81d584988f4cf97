import { IconButton } from '@/shared/ui'
import { IconNext, IconPrevious } from '@/shared/ui/icons'
import styles from './Message.module.css'

export interface BranchSwitcherProps {
  id: string
  siblings: readonly string[]
  what: 'question' | 'answer'
  onSelect: (messageId: string) => void
}

/** ‹ 2/3 › between the versions of a message; nothing when there is one. */
export function BranchSwitcher({ id, siblings, what, onSelect }: BranchSwitcherProps) {
  if (siblings.length < 2) return null
  const at = siblings.indexOf(id)
  const go = (step: number) => {
    const target = siblings[at + step]
    if (target) onSelect(target)
  }
  return (
    <span className={styles.branches} role="group" aria-label={`Versions of this ${what}`}>
      <IconButton size="s" label={`Previous version of the ${what}`} disabled={at <= 0} onClick={() => go(-1)}>
        <IconPrevious className={styles.flip} />
      </IconButton>
      <span className={styles.count} aria-live="polite">
        {at + 1}/{siblings.length}
      </span>
      <IconButton size="s" label={`Next version of the ${what}`} disabled={at >= siblings.length - 1} onClick={() => go(1)}>
        <IconNext className={styles.flip} />
      </IconButton>
    </span>
  )
}

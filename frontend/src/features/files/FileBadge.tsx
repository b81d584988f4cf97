import styles from './files.module.css'
import type { Progress } from './progress'

/** A tile with the file's ending; a ring around it while something is going on. Decorative: the words stand beside it. */
export function FileBadge({ name, progress }: { name: string; progress?: Progress | undefined }) {
  const ending = (/\.([^.]{1,4})$/.exec(name)?.[1] ?? 'file').toUpperCase()
  const busy = progress?.tone === 'busy' || (progress?.tone === 'warn' && progress.fraction !== null)
  return (
    <span className={styles.badge} data-tone={progress?.tone} aria-hidden>
      {busy && <Ring fraction={progress.fraction} />}
      <span>{ending}</span>
    </span>
  )
}

const LENGTH = 100

function Ring({ fraction }: { fraction: number | null }) {
  return (
    <svg className={styles.ring} viewBox="0 0 36 36" data-spinning={fraction === null || undefined}>
      <rect x="1.5" y="1.5" width="33" height="33" rx="9" className={styles.track} />
      <rect
        x="1.5"
        y="1.5"
        width="33"
        height="33"
        rx="9"
        pathLength={LENGTH}
        className={styles.bar}
        strokeDasharray={LENGTH}
        strokeDashoffset={LENGTH * (1 - (fraction ?? 0.25))}
      />
    </svg>
  )
}

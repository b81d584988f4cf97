import styles from './Spinner.module.css'

/** Decorative: say what is busy beside it, or pass a label. */
export function Spinner({ label }: { label?: string }) {
  return <span className={styles.spinner} role={label ? 'status' : undefined} aria-label={label} aria-hidden={!label || undefined} />
}

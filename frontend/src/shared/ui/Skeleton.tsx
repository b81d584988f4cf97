import styles from './Skeleton.module.css'

/** Grey bars in the place of text that is on its way. Widths are in percent; hidden from assistive software. */
export function Skeleton({ lines = [92, 100, 64] }: { lines?: readonly number[] }) {
  return (
    <div className={styles.block} aria-hidden>
      {lines.map((width, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- the bars never move
        <span key={index} className={styles.bar} style={{ inlineSize: `${width}%` }} />
      ))}
    </div>
  )
}

/** A question in SQL: Ctrl+Enter or Run sends it, what is wrong with it stands below. */
import { useId, useState, type KeyboardEvent } from 'react'
import { Button, Notice } from '@/shared/ui'
import styles from './tables.module.css'
import type { Asked } from './useTables'

export function SqlBox({ initial, asked }: { initial: string; asked: Asked }) {
  const id = useId()
  const [sql, setSql] = useState(initial)
  const run = () => sql.trim() && asked.ask(sql)
  const onKeyDown = (event: KeyboardEvent) => {
    // The viewer around it has shortcuts of its own.
    event.stopPropagation()
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    run()
  }
  return (
    <form
      className={styles.sql}
      onSubmit={(event) => {
        event.preventDefault()
        run()
      }}
    >
      <label htmlFor={id}>SQL</label>
      <textarea
        id={id}
        value={sql}
        rows={Math.min(8, Math.max(2, sql.split('\n').length))}
        spellCheck={false}
        autoCapitalize="off"
        autoCorrect="off"
        maxLength={10_000}
        aria-describedby={`${id}-note`}
        aria-invalid={asked.error ? true : undefined}
        onChange={(event) => setSql(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className={styles.run}>
        <Button type="submit" size="s" variant="primary" disabled={!sql.trim()} title="Ctrl+Enter">
          {asked.busy ? 'Running…' : 'Run'}
        </Button>
        {asked.answer && (
          <Button size="s" onClick={asked.clear}>
            Show the table
          </Button>
        )}
        <span id={`${id}-note`}>One SELECT, read-only. Ctrl+Enter runs it.</span>
      </div>
      <div aria-live="polite">{asked.error && <Notice tone="danger">{asked.error}</Notice>}</div>
    </form>
  )
}

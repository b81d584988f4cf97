/** The tables of one file: which there are, their rows, and questions to them in SQL. */
import { useEffect, useMemo, useState, type ReactNode } from 'react'
import { ApiError, describeError, type Id, type TableRecord } from '@/shared/api'
import { Button, IconButton, Notice, Skeleton } from '@/shared/ui'
import { IconClose, IconNext, IconPrevious } from '@/shared/ui/icons'
import { Grid } from './Grid'
import { SqlBox } from './SqlBox'
import styles from './tables.module.css'
import { PAGE_ROWS, useQuestion, useRows, useTables } from './useTables'

export { useTables } from './useTables'

export interface TableViewerProps {
  fileId: Id
  fileName: string
  /** The number of the table that is shown first. */
  table?: number | null
  /** A question that is asked as soon as it opens. */
  sql?: string | undefined
  onClose: () => void
  footer?: ReactNode
}

export function TableViewer({ fileId, fileName, table = null, sql, onClose, footer }: TableViewerProps) {
  const { data, error, loading, reload } = useTables(fileId)
  const [chosen, setChosen] = useState(table)
  const tables = data?.results ?? []
  const current = tables.find((item) => item.number === chosen) ?? tables[0]
  const gone = error instanceof ApiError && error.status === 404
  return (
    <div className={styles.viewer}>
      <header className={styles.header}>
        <div>
          <h2>{fileName}</h2>
          <p>{current ? placeOf(current) : 'Tables'}</p>
        </div>
        <IconButton label="Close" onClick={onClose}>
          <IconClose />
        </IconButton>
      </header>
      {tables.length > 0 && current && (
        <div className={styles.bar}>
          <label>
            Table{' '}
            <select value={current.number} onChange={(event) => setChosen(Number(event.target.value))}>
              {tables.map((item) => (
                <option key={item.number} value={item.number}>
                  {optionOf(item)}
                </option>
              ))}
            </select>
          </label>
          <span>{count(current.rows, 'row')}</span>
        </div>
      )}
      {current ? (
        <Table key={current.number} fileId={fileId} table={current} sql={current.number === table || table === null ? sql : undefined} />
      ) : (
        <div className={styles.state}>
          {loading && !data && <Skeleton lines={[60, 100, 100, 80]} />}
          {!!error && (
            <Notice tone="danger">
              {gone ? 'This file was deleted.' : describeError(error)} {!gone && <Button size="s" onClick={reload}>Try again</Button>}
            </Notice>
          )}
          {data && <p>There are no tables in this file.</p>}
        </div>
      )}
      {footer}
    </div>
  )
}

function Table({ fileId, table, sql }: { fileId: Id; table: TableRecord; sql: string | undefined }) {
  const asked = useQuestion(fileId)
  const { ask } = asked
  const [offset, setOffset] = useState(0)
  const rows = useRows(fileId, table.number, offset)
  const labels = useMemo(
    () => new Map(table.columns.filter((column) => column.label && column.label.toLowerCase() !== column.name).map((column) => [column.name, column.label])),
    [table],
  )
  useEffect(() => {
    if (sql) ask(sql)
  }, [sql, ask])
  const shown = asked.answer ?? rows.data
  return (
    <div className={styles.content}>
      <SqlBox initial={sql ?? `SELECT *\nFROM ${table.name}\nLIMIT 100`} asked={asked} />
      <Columns table={table} />
      {table.notes.map((note) => (
        <Notice key={note}>{note}</Notice>
      ))}
      <div className={styles.about}>
        <p role="status">{asked.answer ? answered(asked.answer.rows.length, asked.answer.truncated) : range(table, offset, rows.data?.rows.length)}</p>
        {!asked.answer && table.rows > PAGE_ROWS && (
          <div role="group" aria-label="Rows">
            <IconButton size="s" label="Previous rows" disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - PAGE_ROWS))}>
              <IconPrevious />
            </IconButton>
            <IconButton size="s" label="Next rows" disabled={offset + PAGE_ROWS >= table.rows} onClick={() => setOffset(offset + PAGE_ROWS)}>
              <IconNext />
            </IconButton>
          </div>
        )}
      </div>
      {shown && <Grid answer={shown} label={asked.answer ? 'Answer' : `Rows of ${table.name}`} labels={asked.answer ? undefined : labels} />}
      {!shown && rows.loading && <Skeleton lines={[100, 100, 100, 100]} />}
      {!shown && !!rows.error && (
        <Notice tone="danger">
          {describeError(rows.error)} <Button size="s" onClick={rows.reload}>Try again</Button>
        </Notice>
      )}
    </div>
  )
}

function Columns({ table }: { table: TableRecord }) {
  return (
    <details className={styles.columns}>
      <summary>{count(table.columns.length, 'column')}</summary>
      <ul>
        {table.columns.map((column) => (
          <li key={column.name}>
            <code>{column.name}</code> {column.label && column.label.toLowerCase() !== column.name && <q>{column.label}</q>}{' '}
            <span>
              {column.type}
              {column.unit && ` in ${column.unit}`}
              {column.least && `, ${column.least} to ${column.most}`}
              {column.empty > 0 && `, ${count(column.empty, 'cell')} empty`}
            </span>
          </li>
        ))}
      </ul>
    </details>
  )
}

const count = (number: number, what: string) => `${number.toLocaleString('en')} ${what}${number === 1 ? '' : 's'}`
const placeOf = (table: TableRecord) =>
  table.page === null ? `${table.sheet ? `${table.sheet}, ` : ''}rows ${table.first_row.toLocaleString('en')} to ${table.last_row.toLocaleString('en')}` : `Page ${table.page}`
const optionOf = (table: TableRecord) => (table.sheet && table.sheet.toLowerCase() !== table.name ? `${table.name} (${table.sheet})` : table.name)
const answered = (rows: number, more: boolean) => (rows === 0 ? 'No rows match.' : more ? `The first ${count(rows, 'row')}; there are more.` : count(rows, 'row'))
const range = (table: TableRecord, offset: number, rows: number | undefined) =>
  rows === undefined ? 'Reading rows…' : `Rows ${(offset + 1).toLocaleString('en')} to ${(offset + rows).toLocaleString('en')} of ${table.rows.toLocaleString('en')}`

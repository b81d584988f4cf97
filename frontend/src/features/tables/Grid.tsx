/** Rows and columns of a table or of an answer, in a box that scrolls both ways. */
import type { TableAnswer } from '@/shared/api'
import styles from './tables.module.css'

type Cell = string | number | boolean | null
const NUMBERS = /^(?:U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|DECIMAL|DOUBLE|FLOAT|REAL)/

export function Grid({ answer, label, labels }: { answer: TableAnswer; label: string; labels?: ReadonlyMap<string, string> | undefined }) {
  const numbers = answer.row_numbers
  return (
    // It scrolls, so the keyboard must reach it.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={styles.scroll} role="region" aria-label={label} tabIndex={0}>
      <table className={styles.grid}>
        <thead>
          <tr>
            {numbers && <th scope="col">Row</th>}
            {answer.columns.map((column, index) => (
              <th key={index} scope="col" data-number={NUMBERS.test(column.type) || undefined} title={column.type}>
                {column.name}
                {labels?.get(column.name) && <small>{labels.get(column.name)}</small>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {answer.rows.map((row, index) => (
            <tr key={index}>
              {numbers && <th scope="row">{numbers[index]}</th>}
              {(row as Cell[]).map((cell, column) => (
                <td key={column} data-number={NUMBERS.test(answer.columns[column]?.type ?? '') || undefined}>
                  {cell === null ? <span className={styles.empty}>empty</span> : shown(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** As it is, for copying: numbers without marks between their thousands. */
const shown = (cell: Exclude<Cell, null>) => (typeof cell === 'boolean' ? (cell ? 'true' : 'false') : String(cell))

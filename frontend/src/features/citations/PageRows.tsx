import { Fragment, useEffect, useMemo, useRef } from 'react'
import styles from './citations.module.css'
import { findPassage } from './findPassage'

export interface PageRowsProps {
  text: string
  /** The number of the row that each line of the text is, null where it is none. */
  rows: readonly (number | null)[]
  passage: string | null
  number: number
}

/** A page of a sheet: its tables with the numbers that spreadsheet programs show; the passage is marked and brought into view. */
export function PageRows({ text, rows, passage, number }: PageRowsProps) {
  const box = useRef<HTMLDivElement>(null)
  const blocks = useMemo(() => blocksOf(text, rows, passage), [text, rows, passage])
  useEffect(() => {
    box.current?.scrollTo?.(0, 0)
    const first = box.current?.querySelector('tr[data-marked]') ?? box.current?.querySelector('mark')
    first?.scrollIntoView({ block: 'center', inline: 'nearest' })
  }, [blocks])
  return (
    // It scrolls, so the keyboard must reach it.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div ref={box} className={styles.rows} tabIndex={0} role="region" aria-label={`Text of page ${number}`} dir="auto">
      {blocks.map((lines, index) =>
        lines[0]?.row ? (
          // oxlint-disable-next-line react/no-array-index-key -- the blocks are replaced as a whole
          <Rows key={index} lines={lines} />
        ) : (
          // oxlint-disable-next-line react/no-array-index-key -- the blocks are replaced as a whole
          <Words key={index} lines={lines} />
        ),
      )}
    </div>
  )
}

function Rows({ lines }: { lines: readonly Line[] }) {
  return (
    <table>
      <tbody>
        {lines.map((line) => (
          <tr key={line.row} data-marked={line.marked || undefined}>
            <th scope="row">{line.row}</th>
            {cellsOf(line.text).map((cell, column) => (
              // oxlint-disable-next-line react/no-array-index-key -- a column has no other name
              <td key={column}>{cell}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Words({ lines }: { lines: readonly Line[] }) {
  return (
    <p>
      {lines.map((line, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- the lines are replaced as a whole
        <Fragment key={index}>
          {index > 0 && '\n'}
          {line.marked ? <mark>{line.text}</mark> : line.text}
        </Fragment>
      ))}
    </p>
  )
}

interface Line {
  row: number | null
  text: string
  marked: boolean
}

/** Tables, and what stands between them: an empty line ends each. */
function blocksOf(text: string, rows: readonly (number | null)[], passage: string | null): Line[][] {
  const ranges = passage ? findPassage(text, passage) : []
  const blocks: Line[][] = [[]]
  let at = 0
  for (const [index, line] of text.split('\n').entries()) {
    const end = at + line.length
    if (line === '') blocks.push([])
    else blocks.at(-1)?.push({ row: rows[index] ?? null, text: line, marked: ranges.some(([from, to]) => from < end && to > at) })
    at = end + 1
  }
  return blocks.filter((block) => block.length > 0)
}

/** There are bars between the cells of a line. */
const cellsOf = (line: string): string[] => line.split(/(?:^| )\|(?: |$)/)

import { useEffect, useMemo, useRef, type ReactNode } from 'react'
import styles from './citations.module.css'
import { findPassage } from './findPassage'

/** The text of a page, to read, select and search; the passage is marked and brought into view. */
export function PageText({ text, passage, number }: { text: string; passage: string | null; number: number }) {
  const first = useRef<HTMLElement>(null)
  const pieces = useMemo(() => split(text, passage), [text, passage])
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    box.current?.scrollTo?.(0, 0)
    first.current?.scrollIntoView({ block: 'center' })
  }, [pieces])
  const firstMark = pieces.findIndex((piece) => piece.marked)
  return (
    // It scrolls, so the keyboard must reach it.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div ref={box} className={styles.text} tabIndex={0} role="region" aria-label={`Text of page ${number}`} dir="auto">
      {pieces.map((piece, index): ReactNode => {
        if (!piece.marked) return piece.text
        return (
          // oxlint-disable-next-line react/no-array-index-key -- the pieces are replaced as a whole
          <mark key={index} ref={index === firstMark ? first : undefined}>
            {piece.text}
          </mark>
        )
      })}
    </div>
  )
}

interface Piece {
  text: string
  marked: boolean
}

function split(text: string, passage: string | null): Piece[] {
  const pieces: Piece[] = []
  let at = 0
  for (const [start, end] of passage ? findPassage(text, passage) : []) {
    pieces.push({ text: text.slice(at, start), marked: false }, { text: text.slice(start, end), marked: true })
    at = end
  }
  pieces.push({ text: text.slice(at), marked: false })
  return pieces.filter((piece) => piece.text !== '')
}

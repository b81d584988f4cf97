/** The mark of a source inside an answer, with a card that shows the passage when it is pointed at or focused. */
import { createContext, use, useEffect, useId, useLayoutEffect, useRef, useState } from 'react'
import { createPortal } from 'react-dom'
import type { Citation } from '@/shared/api'
import { PASSAGE_GONE, sourceName, sourcePlace } from '@/shared/words'
import styles from './cite.module.css'
import { doubtOfMark } from './doubt'

export interface CiteContextValue {
  byNumber: ReadonlyMap<number, Citation>
  onCite: ((citation: Citation) => void) | undefined
}

/** A context, so that citations which arrive at the end redraw the chips alone and no text. */
export const CiteContext = createContext<CiteContextValue>({ byNumber: new Map(), onCite: undefined })

/** `raw` stays as text when one of the numbers is no known source; `said` is what the mark vouches for. */
export function CiteChips({ numbers, raw, said }: { numbers: readonly number[]; raw: string; said: string }) {
  const { byNumber, onCite } = use(CiteContext)
  const citations = numbers.map((n) => byNumber.get(n))
  if (citations.some((citation) => !citation)) return raw
  return citations.map((citation) => citation && <CiteChip key={citation.n} citation={citation} doubt={doubtOfMark(citation, said)} onCite={onCite} />)
}

const OPEN_MS = 180
const CLOSE_MS = 140

interface CiteChipProps {
  citation: Citation
  doubt: string
  onCite: CiteContextValue['onCite']
}

function CiteChip({ citation, doubt, onCite }: CiteChipProps) {
  /** The chip itself while its card is open. */
  const [anchor, setAnchor] = useState<HTMLElement | null>(null)
  const timer = useRef(0)
  const id = useId()
  const later = (value: HTMLElement | null, ms: number) => {
    clearTimeout(timer.current)
    timer.current = window.setTimeout(() => setAnchor(value), ms)
  }
  useEffect(() => () => clearTimeout(timer.current), [])
  return (
    <>
      <button
        type="button"
        className={styles.chip}
        aria-label={`Source ${citation.n}: ${sourceName(citation)}, ${sourcePlace(citation)}${doubt ? `. ${doubt}` : ''}`}
        data-doubt={doubt ? true : undefined}
        aria-describedby={anchor ? id : undefined}
        onClick={() => {
          later(null, 0)
          onCite?.(citation)
        }}
        onPointerEnter={(event) => event.pointerType === 'mouse' && later(event.currentTarget, OPEN_MS)}
        onPointerLeave={() => later(null, CLOSE_MS)}
        onFocus={(event) => event.currentTarget.matches(':focus-visible') && later(event.currentTarget, 0)}
        onBlur={() => later(null, 0)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape' || !anchor) return
          event.stopPropagation()
          later(null, 0)
        }}
      >
        {citation.n}
        {doubt && '?'}
      </button>
      {anchor && (
        <CiteCard id={id} citation={citation} doubt={doubt} anchor={anchor} onEnter={() => later(anchor, 0)} onLeave={() => later(null, CLOSE_MS)} />
      )}
    </>
  )
}

interface CiteCardProps {
  id: string
  citation: Citation
  doubt: string
  anchor: HTMLElement
  onEnter: () => void
  onLeave: () => void
}

function CiteCard({ id, citation, doubt, anchor, onEnter, onLeave }: CiteCardProps) {
  const card = useRef<HTMLDivElement>(null)
  const [place, setPlace] = useState<{ x: number; y: number } | null>(null)
  useLayoutEffect(() => {
    if (card.current) setPlace(placeOf(anchor.getBoundingClientRect(), card.current))
  }, [anchor])
  useEffect(() => {
    // The card has a fixed place; rather than follow a scrolling answer it goes away.
    window.addEventListener('scroll', onLeave, { capture: true, passive: true })
    return () => window.removeEventListener('scroll', onLeave, true)
  }, [onLeave])
  return createPortal(
    <div
      ref={card}
      id={id}
      role="tooltip"
      className={styles.card}
      style={place ? { left: place.x, top: place.y } : { visibility: 'hidden' }}
      onPointerEnter={onEnter}
      onPointerLeave={onLeave}
    >
      <p className={styles.where}>
        <span className={styles.file}>{sourceName(citation)}</span>
        <span>{sourcePlace(citation)}</span>
      </p>
      {citation.heading && <p className={styles.heading}>{citation.heading}</p>}
      {doubt && <p className={styles.doubt}>{doubt}</p>}
      <p className={styles.passage} dir="auto">
        {citation.file_id ? citation.text : PASSAGE_GONE}
      </p>
    </div>,
    anchor.closest('dialog') ?? document.body,
  )
}

function placeOf(anchor: DOMRect, card: HTMLElement): { x: number; y: number } {
  const gap = 6
  const edge = 8
  const { offsetWidth: width, offsetHeight: height } = card
  const above = anchor.top - gap - height
  const x = Math.max(edge, Math.min(anchor.left + anchor.width / 2 - width / 2, innerWidth - width - edge))
  return { x, y: above >= edge ? above : anchor.bottom + gap }
}

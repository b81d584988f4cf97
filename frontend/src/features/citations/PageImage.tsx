/** The picture of a page with its passage marked. Boxes are fractions of the page, so they hold at every size. */
import { useEffect, useRef, useState } from 'react'
import type { Box, Id } from '@/shared/api'
import { Spinner } from '@/shared/ui'
import styles from './citations.module.css'

export interface PageImageProps {
  fileId: Id
  fileName: string
  number: number
  /** Height over width, known before the image is. */
  aspect: number
  boxes: readonly Box[]
  /** 1 fills the width. */
  zoom: number
  onMissing: () => void
}

/** Few sizes, so that the server renders and the browser keeps each once. */
const WIDTHS = [800, 1200, 1600, 2400] as const

function widthFor(cssPixels: number): number {
  const wanted = cssPixels * Math.min(3, window.devicePixelRatio || 1)
  return WIDTHS.find((width) => width >= wanted * 0.9) ?? 2400
}

export function PageImage({ fileId, fileName, number, aspect, boxes, zoom, onMissing }: PageImageProps) {
  const view = useRef<HTMLDivElement>(null)
  const mark = useRef<HTMLDivElement>(null)
  const [room, setRoom] = useState(0)
  const [loaded, setLoaded] = useState('')
  useEffect(() => {
    const node = view.current
    if (!node) return
    const observer = new ResizeObserver(([entry]) => setRoom(entry?.contentRect.width ?? 0))
    observer.observe(node)
    return () => observer.disconnect()
  }, [])
  const source = room > 0 ? `/api/files/${fileId}/pages/${number}/image?width=${widthFor(room * zoom)}` : ''
  const ready = loaded === `${fileId}/${number}`
  // The box stays when the page is turned, and with it the focus of whoever turns pages by keyboard.
  // Braces: newer browsers return a promise from scrolling, which is no clean-up.
  useEffect(() => {
    view.current?.scrollTo?.(0, 0)
  }, [fileId, number])
  useEffect(() => {
    if (ready) mark.current?.scrollIntoView({ block: 'center', inline: 'nearest' })
  }, [ready, boxes])
  return (
    // It scrolls, so the keyboard must reach it.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div ref={view} className={styles.view} tabIndex={0} role="region" aria-label={`Page ${number}`}>
      <div className={styles.sheet} style={{ inlineSize: `${zoom * 100}%`, aspectRatio: `1 / ${aspect}` }}>
        {source && (
          <img
            key={number}
            className={styles.paper}
            src={source}
            alt={`Page ${number} of ${fileName}`}
            onLoad={() => setLoaded(`${fileId}/${number}`)}
            onError={onMissing}
          />
        )}
        {!ready && (
          <div className={styles.waiting}>
            <Spinner label="Loading the page" />
          </div>
        )}
        {ready &&
          boxes.map(([x0, y0, x1, y1], index) => (
            <div
              // oxlint-disable-next-line react/no-array-index-key -- boxes never change their order
              key={index}
              ref={index === 0 ? mark : undefined}
              className={styles.mark}
              data-testid="passage"
              aria-hidden
              style={{ left: `${x0 * 100}%`, top: `${y0 * 100}%`, width: `${(x1 - x0) * 100}%`, height: `${(y1 - y0) * 100}%` }}
            />
          ))}
      </div>
    </div>
  )
}

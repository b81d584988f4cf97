/** Turns the pages of one file: as a picture where there is one, and as text. */
import { useState, type KeyboardEvent, type ReactNode } from 'react'
import { ApiError, describeError, type Box, type FileRecord, type Id, type PageRecord } from '@/shared/api'
import { PASSAGE_GONE } from '@/shared/words'
import { Button, IconButton, Notice, Skeleton } from '@/shared/ui'
import { IconClose, IconFitWidth, IconNext, IconPrevious, IconZoomIn, IconZoomOut } from '@/shared/ui/icons'
import styles from './citations.module.css'
import { PageImage } from './PageImage'
import { PageRows } from './PageRows'
import { PageText } from './PageText'
import { useFilePages, usePageText } from './useFilePages'

export interface PageViewerProps {
  fileId: Id
  fileName: string
  page: number
  onPage: (page: number) => void
  /** The passage to mark, when `page` is the one it stands on. */
  passage?: { text: string; boxes: readonly Box[] } | null
  /** Where in the file the passage stands. */
  heading?: string
  onClose: () => void
  footer?: ReactNode
}

const ZOOMS = [0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4] as const
const NO_BOXES: readonly Box[] = []
/** DIN A4, until the page's own size is known. */
const USUAL_ASPECT = Math.SQRT2

export function PageViewer({ fileId, fileName, page, onPage, passage = null, heading = '', onClose, footer }: PageViewerProps) {
  const { file, pages, error, loading, reload } = useFilePages(fileId)
  const [zoom, setZoom] = useState(1)
  const [asText, setAsText] = useState(false)
  /** Pages whose picture turned out not to exist. */
  const [missing, setMissing] = useState<ReadonlySet<string>>(new Set())
  const entry = pages.find((item) => item.number === page)
  const count = file?.page_count ?? pages.length
  const imageKey = `${fileId}/${page}`
  const hasImage = (file?.kind === 'pdf' || file?.kind === 'image') && !missing.has(imageKey)
  const gone = error instanceof ApiError && error.status === 404

  const turn = (to: number) => to >= 1 && to <= count && onPage(to)
  const step = (direction: 1 | -1) => setZoom((old) => (direction > 0 ? ZOOMS.find((value) => value > old) : ZOOMS.findLast((value) => value < old)) ?? old)
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return
    const scrolls = event.target instanceof HTMLElement && event.target.scrollWidth > event.target.clientWidth + 1
    const action = keyAction(event.key, scrolls)
    if (!action) return
    event.preventDefault()
    if (action === 'next') turn(page + 1)
    else if (action === 'previous') turn(page - 1)
    else if (action === 'fit') setZoom(1)
    else step(action === 'in' ? 1 : -1)
  }
  return (
    // Shortcuts for what the toolbar's buttons do as well.
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions
    <div className={styles.viewer} onKeyDown={onKeyDown}>
      <Header name={fileName} file={file} entry={entry} heading={heading} onClose={onClose} />
      {!gone && (
        <div className={styles.bar} role="toolbar" aria-label="Page">
          <div className={styles.group}>
            <IconButton size="s" label="Previous page" shortcut="ArrowLeft" disabled={page <= 1} onClick={() => turn(page - 1)}>
              <IconPrevious />
            </IconButton>
            <PageNumber page={page} count={count} onPage={turn} />
            <IconButton size="s" label="Next page" shortcut="ArrowRight" disabled={page >= count} onClick={() => turn(page + 1)}>
              <IconNext />
            </IconButton>
          </div>
          {hasImage && (
            <div className={styles.group}>
              {!asText && <ZoomButtons zoom={zoom} onStep={step} onFit={() => setZoom(1)} />}
              <div className={styles.tabs} role="group" aria-label="Show the page as">
                <button type="button" aria-pressed={!asText} onClick={() => setAsText(false)}>
                  Page
                </button>
                <button type="button" aria-pressed={asText} onClick={() => setAsText(true)}>
                  Text
                </button>
              </div>
            </div>
          )}
        </div>
      )}
      <div className={styles.body}>
        {gone ? (
          <Gone words="This file is not here any more. It was deleted." />
        ) : error && !file ? (
          <Failed error={error} onRetry={reload} passage={passage?.text ?? null} />
        ) : loading && !file ? (
          <div className={styles.padded}>
            <Skeleton lines={[60, 100, 96, 100, 40]} />
          </div>
        ) : hasImage && !asText ? (
          <>
            <PageState entry={entry} />
            <PageImage
              fileId={fileId}
              fileName={fileName}
              number={page}
              aspect={entry?.width && entry.height ? entry.height / entry.width : USUAL_ASPECT}
              boxes={passage?.boxes ?? NO_BOXES}
              zoom={zoom}
              onMissing={() => setMissing((old) => new Set(old).add(imageKey))}
            />
          </>
        ) : (
          <TextOfPage fileId={fileId} number={page} entry={entry} passage={passage?.text ?? null} />
        )}
      </div>
      {footer}
    </div>
  )
}

interface HeaderProps {
  name: string
  file: FileRecord | null
  entry: PageRecord | undefined
  heading: string
  onClose: () => void
}

function Header({ name, file, entry, heading, onClose }: HeaderProps) {
  return (
    <header className={styles.header}>
      <div className={styles.title}>
        <h2 title={name}>{name}</h2>
        <p>
          {entry?.source === 'ocr' && (
            <span className={styles.ocr} title="The text of this page was read from a scan and may have mistakes">
              OCR
            </span>
          )}
          {heading && <span className={styles.heading}>{heading}</span>}
          {!heading && file?.kind === 'image' && <span>Image</span>}
        </p>
      </div>
      <IconButton label="Close" shortcut="Escape" onClick={onClose}>
        <IconClose />
      </IconButton>
    </header>
  )
}

type KeyAction = 'next' | 'previous' | 'in' | 'out' | 'fit'

/** Left and right belong to a part that scrolls sideways while it has the focus. */
function keyAction(key: string, scrolls: boolean): KeyAction | null {
  if (key === '+' || key === '=') return 'in'
  if (key === '-') return 'out'
  if (key === '0') return 'fit'
  if (scrolls) return null
  if (key === 'ArrowRight') return 'next'
  return key === 'ArrowLeft' ? 'previous' : null
}

function ZoomButtons({ zoom, onStep, onFit }: { zoom: number; onStep: (direction: 1 | -1) => void; onFit: () => void }) {
  return (
    <>
      <IconButton size="s" label="Zoom out" shortcut="-" disabled={zoom <= ZOOMS[0]} onClick={() => onStep(-1)}>
        <IconZoomOut />
      </IconButton>
      <IconButton size="s" label="Zoom in" shortcut="+" disabled={zoom >= 4} onClick={() => onStep(1)}>
        <IconZoomIn />
      </IconButton>
      <IconButton size="s" className={styles.fit} label="Fit the width" shortcut="0" disabled={zoom === 1} onClick={onFit}>
        <IconFitWidth />
      </IconButton>
    </>
  )
}

function PageNumber({ page, count, onPage }: { page: number; count: number; onPage: (page: number) => void }) {
  const [typed, setTyped] = useState(String(page))
  const [last, setLast] = useState(page)
  if (last !== page) {
    setLast(page)
    setTyped(String(page))
  }
  const leave = () => {
    const wanted = Math.round(Number(typed))
    if (wanted >= 1 && wanted <= count && wanted !== page) onPage(wanted)
    else setTyped(String(page))
  }
  return (
    <span className={styles.number}>
      <input
        aria-label={`Page, of ${count}`}
        inputMode="numeric"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onFocus={(event) => event.target.select()}
        onBlur={leave}
        onKeyDown={(event) => event.key === 'Enter' && leave()}
      />
      <span aria-hidden>/ {count || '–'}</span>
    </span>
  )
}

function PageState({ entry }: { entry: PageRecord | undefined }) {
  if (!entry || entry.state === 'ready') return null
  return <div className={styles.state}>{entry.state === 'failed' ? <FailedPage entry={entry} /> : <Notice live>{unreadWords(entry)}</Notice>}</div>
}

function unreadWords(entry: PageRecord): string {
  return entry.state === 'ocr' ? 'This page is a scan and is being read by OCR.' : 'The text of this page has not been read yet.'
}

function FailedPage({ entry }: { entry: PageRecord }) {
  return <Notice tone="warn">The text of this page could not be read. {entry.error?.message}</Notice>
}

interface TextOfPageProps {
  fileId: Id
  number: number
  entry: PageRecord | undefined
  passage: string | null
}

function TextOfPage({ fileId, number, entry, passage }: TextOfPageProps) {
  const { data, error, loading } = usePageText(fileId, number, entry?.state)
  if (entry && entry.state !== 'ready') {
    return (
      <div className={styles.padded}>
        <PageState entry={entry} />
      </div>
    )
  }
  if (error && !data) {
    return (
      <div className={styles.padded}>
        <Notice tone="danger">{describeError(error)}</Notice>
      </div>
    )
  }
  if (loading || !data) {
    return (
      <div className={styles.padded}>
        <Skeleton lines={[100, 96, 100, 88, 40]} />
      </div>
    )
  }
  if (!data.text?.trim()) return <p className={styles.blank}>There is no text on this page.</p>
  if (data.row_numbers) return <PageRows text={data.text} rows={data.row_numbers} passage={passage} number={number} />
  return <PageText text={data.text} passage={passage} number={number} />
}

/** What is left of a citation whose file was deleted. */
export function DeletedFile({ onClose, footer }: Pick<PageViewerProps, 'onClose' | 'footer'>) {
  return (
    <div className={styles.viewer}>
      <Header name="Deleted file" file={null} entry={undefined} heading="" onClose={onClose} />
      <div className={styles.body}>
        <Gone words={PASSAGE_GONE} />
      </div>
      {footer}
    </div>
  )
}

function Gone({ words }: { words: string }) {
  return (
    <div className={styles.padded}>
      <Notice>{words}</Notice>
    </div>
  )
}

function Failed({ error, onRetry, passage }: { error: unknown; onRetry: () => void; passage: string | null }) {
  return (
    <div className={styles.padded}>
      <Notice tone="danger" live actions={<Button size="s" onClick={onRetry}>Try again</Button>}>
        {describeError(error)}
      </Notice>
      <Quoted passage={passage} />
    </div>
  )
}

function Quoted({ passage }: { passage: string | null }) {
  if (!passage) return null
  return (
    <figure className={styles.quoted}>
      <figcaption>The passage that the answer used</figcaption>
      <blockquote dir="auto">{passage}</blockquote>
    </figure>
  )
}

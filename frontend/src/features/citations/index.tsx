/** The source of a statement: its page with the passage marked, and the other sources of the same answer. Lazy-loaded. */
import { useEffect, useRef, useState } from 'react'
import { TableViewer } from '@/features/tables'
import type { Citation } from '@/shared/api'
import { sourceName, sourcePlace } from '@/shared/words'
import styles from './citations.module.css'
import { DeletedFile, PageViewer } from './PageViewer'

export interface CitationViewerProps {
  citation: Citation
  /** All citations of the answer, for previous and next. */
  citations: readonly Citation[]
  onSelect: (citation: Citation) => void
  onClose: () => void
}

/** Content of the side panel (desktop) or sheet (phone); the frame, its focus trap and Escape belong to the shell. */
export default function CitationViewer({ citation, citations, onSelect, onClose }: CitationViewerProps) {
  const key = `${citation.n}:${citation.passage_id}`
  return (
    <CitedFile key={citation.file_id} citation={citation} citationKey={key} citations={citations} onSelect={onSelect} onClose={onClose} />
  )
}

function CitedFile({ citation, citationKey, citations, onSelect, onClose }: CitationViewerProps & { citationKey: string }) {
  const [page, setPage] = useState(citation.page)
  const [shown, setShown] = useState(citationKey)
  if (shown !== citationKey) {
    setShown(citationKey)
    setPage(citation.page)
  }
  const footer = (
    <Sources
      citation={citation}
      citations={citations}
      onSelect={(next) => {
        onSelect(next)
        // The chosen one may be the current source, left by turning pages.
        if (next === citation) setPage(next.page)
      }}
    />
  )
  if (!citation.file_id) return <DeletedFile onClose={onClose} footer={footer} />
  if (citation.table) {
    return (
      <TableViewer key={citationKey} fileId={citation.file_id} fileName={citation.file_name} table={citation.table} sql={citation.sql} onClose={onClose} footer={footer} />
    )
  }
  return (
    <PageViewer
      fileId={citation.file_id}
      fileName={citation.file_name}
      page={page}
      onPage={setPage}
      passage={page === citation.page ? citation : null}
      heading={citation.locator ? sourcePlace(citation) : citation.heading}
      onClose={onClose}
      footer={footer}
    />
  )
}

function Sources({ citation, citations, onSelect }: Omit<CitationViewerProps, 'onClose'>) {
  const current = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    current.current?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [citation.n])
  if (citations.length < 2) return null
  return (
    <nav className={styles.sources} aria-label="Sources of this answer">
      <ul>
        {citations.map((item) => (
          <li key={item.n}>
            <button ref={item.n === citation.n ? current : undefined} type="button" aria-current={item.n === citation.n || undefined} onClick={() => onSelect(item)}>
              <span className={styles.n}>{item.n}</span>
              <span className={styles.where}>
                <span className={styles.file}>{sourceName(item)}</span>
                <span>{sourcePlace(item)}</span>
              </span>
            </button>
          </li>
        ))}
      </ul>
    </nav>
  )
}

export { PageViewer } from './PageViewer'
export type { PageViewerProps } from './PageViewer'

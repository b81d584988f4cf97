/** The frame of a citation's page: beside the conversation where there is room, a sheet over it where there is none. */
import { Suspense, lazy, useEffect, useRef } from 'react'
import { NARROW, useMediaQuery } from '@/shared/hooks'
import { Dialog, Skeleton } from '@/shared/ui'
import type { Citation } from '@/shared/api'
import { sourceName } from '@/shared/words'
import styles from './ChatPage.module.css'

const CitationViewer = lazy(() => import('@/features/citations'))

export interface OpenCitation {
  citation: Citation
  all: readonly Citation[]
}

export interface CitationPanelProps {
  open: OpenCitation
  onSelect: (citation: Citation) => void
  onClose: () => void
}

export function CitationPanel({ open, onSelect, onClose }: CitationPanelProps) {
  const narrow = useMediaQuery(NARROW)
  const viewer = (
    <Suspense fallback={<div className={styles.panelLoading}><Skeleton lines={[60, 100, 100, 80]} /></div>}>
      <CitationViewer citation={open.citation} citations={open.all} onSelect={onSelect} onClose={onClose} />
    </Suspense>
  )
  if (narrow) {
    return (
      <Dialog title={`Source: ${sourceName(open.citation)}`} hideTitle variant="sheet" onClose={onClose}>
        {viewer}
      </Dialog>
    )
  }
  return (
    <SidePanel label={`Source: ${sourceName(open.citation)}`} onClose={onClose}>
      {viewer}
    </SidePanel>
  )
}

/** Not modal: the conversation beside it stays in use. Takes the focus when it opens and gives it back when it closes. */
function SidePanel({ label, onClose, children }: { label: string; onClose: () => void; children: React.ReactNode }) {
  const ref = useRef<HTMLElement>(null)
  useEffect(() => {
    const before = document.activeElement
    ref.current?.focus()
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    // Escape closes it from anywhere inside, before the page takes it as "stop".
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <aside
      ref={ref}
      className={styles.panel}
      aria-label={label}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        event.preventDefault()
        onClose()
      }}
    >
      {children}
    </aside>
  )
}

import type { Citation } from '@/shared/api'

export interface CitationViewerProps {
  citation: Citation
  /** All citations of the answer, for previous and next. */
  citations: readonly Citation[]
  onSelect: (citation: Citation) => void
  onClose: () => void
}

/** Content of the side panel (desktop) or sheet (phone); the frame, its focus trap and Escape belong to the shell. */
export default function CitationViewer({ citation }: CitationViewerProps) {
  return <p>{citation.text}</p>
}

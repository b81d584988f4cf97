import type { Citation } from '@/shared/api'

export interface MarkdownProps {
  text: string
  /** More text is still to come: unfinished constructs are shown calmly, nothing heavy is highlighted yet. */
  streaming?: boolean
  citations?: readonly Citation[]
  onCite?: (citation: Citation) => void
}

/** Plain text until the Markdown renderer takes this place. */
export function Markdown({ text }: MarkdownProps) {
  return <div style={{ whiteSpace: 'pre-wrap' }}>{text}</div>
}

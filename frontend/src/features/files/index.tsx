import type { ReactNode } from 'react'
import type { FileRecord, Id } from '@/shared/api'

/** A file chosen for the next message. `file` is there once the server knows it; a message may be sent from then on. */
export interface Attachment {
  /** The client's own id, stable from the moment the file is chosen. */
  key: string
  name: string
  size: number
  state: 'uploading' | 'uploaded' | 'failed'
  /** Bytes sent, 0..1. */
  progress: number
  file: FileRecord | null
  error: string | null
}

export interface AttachmentsProps {
  value: readonly Attachment[]
  /** Takes an updater, as uploads report progress long after the render that started them. */
  onChange: (update: (old: readonly Attachment[]) => readonly Attachment[]) => void
  conversationId: Id | null
}

/** What the composer calls for drag, paste and its button. */
export interface AttachmentsApi {
  add: (files: readonly File[]) => void
  /** Opens the browser's file chooser. */
  choose: () => void
}

/** The strip of chips above the composer's text. `ref` gives the composer `add` and `choose`. */
export function Attachments(_props: AttachmentsProps & { ref?: React.Ref<AttachmentsApi> }): ReactNode {
  return null
}

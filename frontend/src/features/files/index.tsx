/** Public face of the files feature: attachments for the composer and what other features need to know of files. */
import type { ReactNode, Ref } from 'react'
import type { FileRecord, Id } from '@/shared/api'
import { AttachmentStrip } from './Attachments'

export { DropZone } from './DropZone'
export type { DropZoneProps } from './DropZone'
export { clearRecords, refreshFile, useFileRecord } from './records'
export { clearUploads, restoreUploads } from './uploads'

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
export function Attachments(props: AttachmentsProps & { ref?: Ref<AttachmentsApi> }): ReactNode {
  return <AttachmentStrip {...props} />
}

/** A file that is on the server already, as an attachment of the next message. */
export function attachmentFromFile(file: FileRecord): Attachment {
  return { key: file.id, name: file.name, size: file.size, state: 'uploaded', progress: 1, file, error: null }
}

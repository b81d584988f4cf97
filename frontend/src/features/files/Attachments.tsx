/** The files chosen for the next message, as chips above the composer's text. Uploads themselves live in uploads.ts. */
import { useEffect, useImperativeHandle, useRef, useState, type Ref } from 'react'
import type { FileRecord } from '@/shared/api'
import { useStore } from '@/shared/hooks'
import { announce, Dialog, IconButton, toast } from '@/shared/ui'
import { IconClose, IconKey, IconRetry, IconUpload } from '@/shared/ui/icons'
import type { Attachment, AttachmentsApi, AttachmentsProps } from '.'
import { FileBadge } from './FileBadge'
import styles from './files.module.css'
import { ACCEPT, MAX_PER_MESSAGE } from './limits'
import { PasswordPrompt } from './PasswordPrompt'
import { progressOfFile, progressOfUpload, type Progress } from './progress'
import { useFileRecord } from './records'
import { addUpload, cancelUpload, forget, resumeUpload, retryUpload, uploadOf, uploads, type Upload } from './uploads'

export function AttachmentStrip({ value, onChange, ref }: AttachmentsProps & { ref?: Ref<AttachmentsApi> }) {
  const input = useRef<HTMLInputElement>(null)
  useSync(value, onChange)

  const add = (chosen: readonly File[]) => {
    const room = MAX_PER_MESSAGE - value.length
    const fresh = chosen.filter((file) => !value.some((item) => isOf(item, file)))
    if (fresh.length > room) toast(`A message can have up to ${MAX_PER_MESSAGE} files.`, { tone: 'error' })
    const added = fresh.slice(0, Math.max(0, room)).map((file) => attachmentOf(addUpload(file)))
    if (added.length === 0) return
    onChange((old) => [...old.filter((item) => !added.some((other) => other.key === item.key)), ...added])
    announce(added.length === 1 ? `${added[0]?.name} added` : `${added.length} files added`)
  }
  useImperativeHandle(ref, () => ({ add, choose: () => input.current?.click() }))

  const remove = (item: Attachment) => {
    // A file that is wholly uploaded stays in the person's files; what is on its way is stopped and removed.
    if (uploadOf(item.key)) cancelUpload(item.key)
    onChange((old) => old.filter((other) => other.key !== item.key))
    announce(`${item.name} removed`)
  }
  return (
    <>
      <FileInput ref={input} onFiles={add} multiple />
      {value.length > 0 && (
        <ul className={styles.strip} aria-label="Attached files">
          {value.map((item) => (
            <Chip key={item.key} item={item} onRemove={() => remove(item)} />
          ))}
        </ul>
      )}
    </>
  )
}

interface FileInputProps {
  onFiles: (files: readonly File[]) => void
  multiple?: boolean
  ref?: Ref<HTMLInputElement>
}

/** Never seen; a button opens it. */
export function FileInput({ onFiles, multiple, ref }: FileInputProps) {
  return (
    <input
      ref={ref}
      type="file"
      hidden
      multiple={multiple}
      accept={ACCEPT}
      aria-label="Files to upload"
      onChange={(event) => {
        onFiles([...(event.target.files ?? [])])
        // So that choosing the same file again is a change.
        event.target.value = ''
      }}
    />
  )
}

/** Carries what happened to an upload into the composer's list. Progress is left out: the chip reads it itself. */
function useSync(value: AttachmentsProps['value'], onChange: AttachmentsProps['onChange']): void {
  const all = useStore(uploads)
  useEffect(() => {
    const next = value.map((item) => synced(item, all))
    if (next.some((item, index) => item !== value[index])) {
      onChange((old) => old.map((item) => synced(item, all)))
      for (const [index, item] of next.entries()) if (item.state !== value[index]?.state) announce(changeOf(item))
    }
    // What reached its list as uploaded need not be followed any more.
    for (const item of value) if (item.state === 'uploaded' && uploadOf(item.key)?.state === 'done') forget(item.key)
  }, [value, onChange, all])
}

function synced(item: Attachment, all: readonly Upload[]): Attachment {
  const upload = all.find((other) => other.key === item.key)
  if (!upload) return item.state === 'uploading' ? { ...item, state: 'failed', error: 'The upload was interrupted. Remove the file and choose it again.' } : item
  const next = attachmentOf(upload)
  return next.state === item.state && next.file?.id === item.file?.id && next.error === item.error ? item : next
}

const STATES = { sending: 'uploading', paused: 'failed', done: 'uploaded', failed: 'failed' } as const

export function attachmentOf(upload: Upload): Attachment {
  return {
    key: upload.key,
    name: upload.name,
    size: upload.size,
    state: STATES[upload.state],
    progress: upload.state === 'done' ? 1 : upload.size > 0 ? upload.sentBytes / upload.size : 0,
    file: upload.file,
    error: upload.state === 'failed' || upload.state === 'paused' ? progressOfUpload(upload).text : null,
  }
}

function changeOf(item: Attachment): string {
  if (item.state === 'uploaded') return `${item.name} uploaded`
  return item.state === 'failed' ? `${item.name}: ${item.error}` : ''
}

function isOf(item: Attachment, file: File): boolean {
  const upload = uploadOf(item.key)
  if (upload) return upload.state !== 'failed' && upload.state !== 'paused' && upload.name === file.name && upload.size === file.size && upload.lastModified === file.lastModified
  return false
}

function Chip({ item, onRemove }: { item: Attachment; onRemove: () => void }) {
  const upload = useStore(uploads, (all) => all.find((other) => other.key === item.key))
  const record = useFileRecord(item.file)
  const again = useRef<HTMLInputElement>(null)
  const progress = progressOf(item, upload, record)
  const resume = ([file]: readonly File[]) => {
    if (file && !resumeUpload(item.key, file)) toast('This is another file. Choose the one that was being uploaded.', { tone: 'error' })
  }
  return (
    <li className={styles.chip} data-tone={progress.tone}>
      <FileBadge name={item.name} progress={progress} />
      <span className={styles.words}>
        <span className={styles.name} title={item.name}>
          {item.name}
        </span>
        <span className={styles.status}>{progress.text}</span>
      </span>
      {upload?.state === 'failed' && upload.canRetry && (
        <IconButton size="s" label={`Try ${item.name} again`} onClick={() => retryUpload(item.key)}>
          <IconRetry />
        </IconButton>
      )}
      {upload?.state === 'paused' && (
        <>
          <FileInput ref={again} onFiles={resume} />
          <IconButton size="s" label={`Choose ${item.name} again`} onClick={() => again.current?.click()}>
            <IconUpload />
          </IconButton>
        </>
      )}
      {record?.state === 'needs_password' && <Unlock file={record} />}
      <IconButton size="s" label={`${item.state === 'uploading' ? 'Cancel' : 'Remove'} ${item.name}`} onClick={onRemove}>
        <IconClose />
      </IconButton>
    </li>
  )
}

/** It is gone, dialog and all, once the file is open. */
function Unlock({ file }: { file: FileRecord }) {
  const [asking, setAsking] = useState(false)
  return (
    <>
      <IconButton size="s" label={`Enter the password of ${file.name}`} onClick={() => setAsking(true)}>
        <IconKey />
      </IconButton>
      {asking && (
        <Dialog title={file.name} onClose={() => setAsking(false)}>
          <PasswordPrompt file={file} />
        </Dialog>
      )}
    </>
  )
}

function progressOf(item: Attachment, upload: Upload | undefined, record: Attachment['file']): Progress {
  if (upload && upload.state !== 'done') return progressOfUpload(upload)
  if (item.state === 'failed') return { text: item.error ?? 'The upload failed.', fraction: null, tone: 'error' }
  return record && record.state !== 'uploading' ? progressOfFile(record) : { text: 'Uploaded', fraction: null, tone: 'busy' }
}

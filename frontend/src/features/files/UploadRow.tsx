import { useRef } from 'react'
import { IconButton, toast } from '@/shared/ui'
import { IconClose, IconRetry, IconUpload } from '@/shared/ui/icons'
import { FileInput } from './Attachments'
import { FileBadge } from './FileBadge'
import styles from './FilesPage.module.css'
import { formatBytes } from './limits'
import { progressOfUpload } from './progress'
import { cancelUpload, resumeUpload, retryUpload, type Upload } from './uploads'

/** An upload that is under way, interrupted or refused. */
export function UploadRow({ upload }: { upload: Upload }) {
  const again = useRef<HTMLInputElement>(null)
  const progress = progressOfUpload(upload)
  const resume = ([file]: readonly File[]) => {
    if (file && !resumeUpload(upload.key, file)) toast('This is another file. Choose the one that was being uploaded.', { tone: 'error' })
  }
  return (
    <li className={styles.row}>
      <FileBadge name={upload.name} progress={progress} />
      <div className={styles.open}>
        <span className={styles.name} title={upload.name}>
          {upload.name}
        </span>
        <span className={styles.status} data-tone={progress.tone}>
          {progress.text}
        </span>
      </div>
      <span className={styles.meta}>
        <span>{formatBytes(upload.size)}</span>
      </span>
      {upload.state === 'failed' && upload.canRetry && (
        <IconButton size="s" label={`Try ${upload.name} again`} onClick={() => retryUpload(upload.key)}>
          <IconRetry />
        </IconButton>
      )}
      {upload.state === 'paused' && (
        <>
          <FileInput ref={again} onFiles={resume} />
          <IconButton size="s" label={`Choose ${upload.name} again`} onClick={() => again.current?.click()}>
            <IconUpload />
          </IconButton>
        </>
      )}
      <IconButton size="s" label={upload.state === 'failed' && !upload.canRetry ? `Dismiss ${upload.name}` : `Cancel ${upload.name}`} onClick={() => cancelUpload(upload.key)}>
        <IconClose />
      </IconButton>
    </li>
  )
}

import { memo } from 'react'
import type { FileRecord } from '@/shared/api'
import { IconButton, Menu, type MenuItem } from '@/shared/ui'
import { IconAsk, IconDelete, IconDownload, IconFile, IconMore, IconRetry, IconStop } from '@/shared/ui/icons'
import { FileBadge } from './FileBadge'
import styles from './FilesPage.module.css'
import { formatBytes } from './limits'
import { progressOfFile } from './progress'
import { useFileRecord } from './records'

export type FileAction = 'open' | 'ask' | 'cancel' | 'retry' | 'delete'

export interface FileRowProps {
  file: FileRecord
  onAction: (action: FileAction, file: FileRecord) => void
}

export const FileRow = memo(function FileRow({ file: initial, onAction }: FileRowProps) {
  const file = useFileRecord(initial) ?? initial
  const progress = progressOfFile(file)
  return (
    <li className={styles.row}>
      <FileBadge name={file.name} progress={progress} />
      {/* Stretched over the row by its style, so that the whole row opens the file and there is one stop for the keyboard. */}
      <button type="button" className={styles.open} onClick={() => onAction('open', file)}>
        <span className={styles.name} title={file.name}>
          {file.name}
        </span>
        <span className={styles.status} data-tone={progress.tone}>
          {progress.text}
        </span>
      </button>
      <span className={styles.meta}>
        <span>{formatBytes(file.size)}</span>
        <time dateTime={file.created_at}>{shortDate(file.created_at)}</time>
      </span>
      <Menu
        label={`Actions for ${file.name}`}
        align="end"
        items={fileMenu(file, onAction)}
        renderTrigger={(trigger) => (
          <IconButton size="s" label={`Actions for ${file.name}`} {...trigger}>
            <IconMore />
          </IconButton>
        )}
      />
    </li>
  )
})

export const canAsk = (file: FileRecord): boolean => file.state === 'processing' || file.state === 'ready' || file.state === 'partial'
/** Also a file whose search by meaning could not be built, which it still is while there is a stage. An upload that never arrived has to be sent again instead. */
export const canRetry = (file: FileRecord): boolean =>
  (file.state === 'failed' && !NOT_ARRIVED.has(file.error?.code ?? '')) || file.state === 'partial' || (file.state === 'ready' && file.searchable === 'keyword' && file.stage === null)
/** While pages are read. What is indexed behind that takes a moment and cannot be stopped. */
export const canCancel = (file: FileRecord): boolean => file.state === 'processing' && (file.stage === null || READING.has(file.stage))
const READING: ReadonlySet<string> = new Set(['verify', 'parse', 'ocr'])
const NOT_ARRIVED: ReadonlySet<string> = new Set(['expired', 'size_mismatch', 'missing'])

function fileMenu(file: FileRecord, onAction: FileRowProps['onAction']): MenuItem[] {
  return [
    ...(canAsk(file) ? [{ key: 'ask', label: 'Ask about it', icon: <IconAsk />, onSelect: () => onAction('ask', file) }] : []),
    { key: 'open', label: 'Open', icon: <IconFile />, onSelect: () => onAction('open', file) },
    { key: 'download', label: 'Download', icon: <IconDownload />, onSelect: () => download(file) },
    ...(canCancel(file) ? [{ key: 'cancel', label: 'Stop reading', icon: <IconStop />, onSelect: () => onAction('cancel', file) }] : []),
    ...(canRetry(file) ? [{ key: 'retry', label: 'Read again', icon: <IconRetry />, onSelect: () => onAction('retry', file) }] : []),
    { key: 'delete', label: 'Delete', icon: <IconDelete />, danger: true, separator: true, onSelect: () => onAction('delete', file) },
  ]
}

/** The server answers with an attachment, so the page stays. */
export function download(file: FileRecord): void {
  const link = document.createElement('a')
  link.href = `/api/files/${file.id}/content`
  link.download = file.name
  link.click()
}

/** "14:05" today, "3 May" this year, else with the year. */
export function shortDate(iso: string, now = new Date()): string {
  const date = new Date(iso)
  if (date.toDateString() === now.toDateString()) return date.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' })
  const year = date.getFullYear() === now.getFullYear() ? {} : ({ year: 'numeric' } as const)
  return date.toLocaleDateString(undefined, { day: 'numeric', month: 'short', ...year })
}

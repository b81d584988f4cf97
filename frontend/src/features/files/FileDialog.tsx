/** One file in full: its facts, the state of each page, and the pages themselves. */
import { useEffect, useState, type ReactNode } from 'react'
import { PageViewer } from '@/features/citations'
import { invalidate, request, useResource, type FileRecord, type Page, type PageRecord } from '@/shared/api'
import { TableViewer, useTables } from '@/features/tables'
import { NARROW, useMediaQuery } from '@/shared/hooks'
import { Button, Dialog, IconButton, Notice, Skeleton } from '@/shared/ui'
import { IconAsk, IconClose, IconDelete, IconDownload, IconRetry, IconStop } from '@/shared/ui/icons'
import { FileBadge } from './FileBadge'
import styles from './FileDialog.module.css'
import { canAsk, canCancel, canRetry, download, type FileAction } from './FileRow'
import { FileSummary } from './FileSummary'
import { formatBytes } from './limits'
import { PasswordPrompt } from './PasswordPrompt'
import { progressOfFile } from './progress'
import { useFileRecord } from './records'

export interface FileDialogProps {
  file: FileRecord
  onAction: (action: FileAction, file: FileRecord) => void
  onClose: () => void
}

export function FileDialog({ file: initial, onAction, onClose }: FileDialogProps) {
  const file = useFileRecord(initial) ?? initial
  const narrow = useMediaQuery(NARROW)
  const [page, setPage] = useState<number | null>(null)
  const [table, setTable] = useState<number | null>(null)
  const readable = (file.page_count ?? 0) > 0
  // Beside its facts there is room for a page from the start; on a phone it comes when it is chosen.
  const shown = page ?? (narrow || !readable ? null : 1)
  const back = () => {
    setPage(null)
    setTable(null)
  }
  const choosePage = (number: number) => {
    setTable(null)
    setPage(number)
  }
  const viewer =
    table !== null ? (
      <TableViewer key={table} fileId={file.id} fileName={file.name} table={table} onClose={() => (narrow ? back() : onClose())} />
    ) : (
      shown !== null && <PageViewer fileId={file.id} fileName={file.name} page={shown} onPage={setPage} onClose={() => (narrow ? back() : onClose())} />
    )
  return (
    <Dialog title={file.name} hideTitle variant={narrow ? 'sheet' : 'wide'} onClose={onClose}>
      <div className={styles.dialog} data-narrow={narrow || undefined}>
        {!(narrow && viewer) && (
          <div className={styles.facts}>
            <Facts file={file} onAction={onAction} closeButton={(narrow || !viewer) && <CloseButton onClose={onClose} />} />
            {(file.state === 'ready' || file.state === 'partial') && <FileSummary file={file} onPage={choosePage} />}
            <Tables file={file} current={table} onTable={setTable} />
            {readable && <Pages file={file} current={table === null ? shown : null} onPage={choosePage} />}
          </div>
        )}
        {viewer && <div className={styles.viewer}>{viewer}</div>}
      </div>
    </Dialog>
  )
}

function CloseButton({ onClose }: { onClose: () => void }) {
  return (
    <IconButton label="Close" onClick={onClose}>
      <IconClose />
    </IconButton>
  )
}

const SEARCHABLE = {
  none: 'Not yet',
  keyword: 'By keywords',
  hybrid: 'By keywords and by meaning',
} as const

const SCANNERS = {
  clamd: 'Checked by ClamAV',
  signatures: 'Checked against a few known signatures; this server has no virus scanner',
} as const

function Facts({ file, onAction, closeButton }: { file: FileRecord; onAction: FileDialogProps['onAction']; closeButton: ReactNode }) {
  const progress = progressOfFile(file)
  return (
    <>
      <div className={styles.head}>
        <FileBadge name={file.name} progress={progress} />
        <div className={styles.names}>
          <h2>{file.name}</h2>
          <p data-tone={progress.tone} role="status">
            {progress.tone === 'error' ? 'Could not be read' : progress.text}
          </p>
        </div>
        {closeButton}
      </div>
      {file.state === 'needs_password' && <PasswordPrompt file={file} />}
      {file.notices.map((notice) => (
        <Notice key={notice.code}>{notice.message}</Notice>
      ))}
      {progress.tone === 'error' && <Notice tone="danger">{progress.text}</Notice>}
      <div className={styles.actions}>
        {canAsk(file) && (
          <Button size="s" variant="primary" icon={<IconAsk aria-hidden />} onClick={() => onAction('ask', file)}>
            Ask about it
          </Button>
        )}
        {canCancel(file) && (
          <Button size="s" icon={<IconStop aria-hidden />} onClick={() => onAction('cancel', file)}>
            Stop reading
          </Button>
        )}
        {canRetry(file) && (
          <Button size="s" icon={<IconRetry aria-hidden />} onClick={() => onAction('retry', file)}>
            {RETRY[file.state] ?? 'Read again'}
          </Button>
        )}
        <IconButton size="s" label="Download" onClick={() => download(file)}>
          <IconDownload />
        </IconButton>
        <IconButton size="s" label="Delete" onClick={() => onAction('delete', file)}>
          <IconDelete />
        </IconButton>
      </div>
      <dl className={styles.table}>
        <Fact name="Size">{formatBytes(file.size)}</Fact>
        <Fact name="Added">{new Date(file.created_at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })}</Fact>
        <Fact name="Searchable">{SEARCHABLE[file.searchable]}</Fact>
        {file.scanner && <Fact name="Malware">{SCANNERS[file.scanner]}</Fact>}
      </dl>
    </>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

const RETRY: Partial<Record<FileRecord['state'], string>> = { partial: 'Read the missing pages' }

const stateOf = (page: PageRecord): string => (page.error?.code === 'cancelled' ? 'not read, because reading was stopped' : PAGE_STATES[page.state])

function Tables({ file, current, onTable }: { file: FileRecord; current: number | null; onTable: (table: number) => void }) {
  const { data, reload } = useTables(file.id)
  // They are ready before the pages are, or behind them.
  useEffect(() => {
    if (data && data.results.length === 0) reload()
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [file.state, file.pages_ready > 0])
  if (!data || data.results.length === 0) return null
  return (
    <section className={styles.tables} aria-label="Tables">
      <h3>Tables</h3>
      <ol>
        {data.results.map((table) => (
          <li key={table.number}>
            <button type="button" aria-current={table.number === current ? 'page' : undefined} onClick={() => onTable(table.number)}>
              <span>{table.sheet || table.name}</span>
              <small>
                {table.rows.toLocaleString('en')} rows, {table.columns.length} columns
              </small>
            </button>
          </li>
        ))}
      </ol>
    </section>
  )
}

const PAGE_STATES = {
  pending: 'not read yet',
  ready: 'ready',
  ocr: 'being read by OCR',
  failed: 'could not be read',
} as const

function Pages({ file, current, onPage }: { file: FileRecord; current: number | null; onPage: (page: number) => void }) {
  const { data } = useResource<Page<PageRecord>>(`file-pages:${file.id}`, () => request(`/api/files/${file.id}/pages`))
  const news = `${file.state} ${file.pages_ready} ${file.pages_failed.length}`
  useEffect(() => {
    if (news !== '') invalidate(`file-pages:${file.id}`)
  }, [file.id, news])
  if (!data) return <Skeleton lines={[80, 80]} />
  const scans = data.results.filter((page) => page.source === 'ocr').length
  return (
    <section className={styles.pages} aria-label="Pages">
      <h3>
        Pages <span>{scans > 0 ? `${scans} read by OCR` : ''}</span>
      </h3>
      <ol>
        {data.results.map((page) => (
          <li key={page.number}>
            <button
              type="button"
              data-state={page.state}
              data-source={page.source}
              aria-current={page.number === current ? 'page' : undefined}
              aria-label={`Page ${page.number}, ${stateOf(page)}${page.source === 'ocr' ? ', read by OCR' : ''}`}
              title={`${stateOf(page)}${page.source === 'ocr' ? ' (OCR)' : ''}${page.error ? `: ${page.error.message}` : ''}`}
              onClick={() => onPage(page.number)}
            >
              {page.number}
            </button>
          </li>
        ))}
      </ol>
    </section>
  )
}

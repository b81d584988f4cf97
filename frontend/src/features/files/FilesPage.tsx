/** All files of a person: what they are, what state they are in, and what can be done with them. Lazy-loaded route. */
import { useDeferredValue, useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { describeError, request, type FileRecord, type Id } from '@/shared/api'
import { useStore } from '@/shared/hooks'
import { Button, ConfirmDialog, Notice, Skeleton, toast } from '@/shared/ui'
import { IconFile, IconSearch, IconUpload } from '@/shared/ui/icons'
import { FileInput } from './Attachments'
import { deleteLater, deleting } from './deletions'
import { DropZone } from './DropZone'
import { FileDialog } from './FileDialog'
import { FileRow, type FileAction } from './FileRow'
import styles from './FilesPage.module.css'
import { files, loadFiles, putRecord } from './records'
import { UploadRow } from './UploadRow'
import { Usage } from './Usage'
import { addUpload, uploads } from './uploads'

export interface FilesPageProps {
  /** The line above the page, from the shell. */
  header?: ReactNode
  /** Begin a new conversation with this file attached. */
  onAsk: (file: FileRecord) => void
}

export default function FilesPage({ header, onAsk }: FilesPageProps) {
  const { list, error, reload } = useFileList()
  const [query, setQuery] = useState('')
  const [open, setOpen] = useState<Id | null>(null)
  const [confirm, setConfirm] = useState<FileRecord | null>(null)
  const input = useRef<HTMLInputElement>(null)
  const found = useFound(list ?? NONE, useDeferredValue(query))
  const unfinished = useUnfinished()

  const add = (chosen: readonly File[]) => {
    for (const file of chosen) addUpload(file)
  }
  const act = (action: FileAction, file: FileRecord) => {
    if (action === 'open') setOpen(file.id)
    else if (action === 'ask') onAsk(file)
    else if (action === 'delete') setConfirm(file)
    else void tell(file, action)
  }
  const opened = open ? (list?.find((file) => file.id === open) ?? null) : null
  const empty = list !== null && list.length === 0 && unfinished.length === 0
  return (
    <div className={styles.page}>
      {header}
      <div className={styles.scroll}>
        <div className={styles.content}>
          <div className={styles.head}>
            <h1 className={styles.title}>Files</h1>
            <Button variant="primary" icon={<IconUpload aria-hidden />} onClick={() => input.current?.click()}>
              Upload
            </Button>
            <FileInput ref={input} onFiles={add} multiple />
          </div>
          {list !== null && <Usage changes={`${list.length} ${unfinished.length}`} />}
          {list !== null && list.length > 0 && (
            <label className={styles.search}>
              <IconSearch aria-hidden />
              <input type="search" aria-label="Search files by name" placeholder="Search by name" value={query} onChange={(event) => setQuery(event.target.value)} />
            </label>
          )}
          {error !== null && list === null && (
            <Notice tone="danger" live actions={<Button size="s" onClick={reload}>Try again</Button>}>
              {describeError(error)}
            </Notice>
          )}
          {unfinished.length > 0 && (
            <section aria-label="Uploads">
              <ul className={styles.list}>
                {unfinished.map((upload) => (
                  <UploadRow key={upload.key} upload={upload} />
                ))}
              </ul>
            </section>
          )}
          {list === null && error === null && <Skeleton lines={[100, 100, 100, 100]} />}
          {empty && <Empty onUpload={() => input.current?.click()} />}
          {found.length > 0 && (
            <ul className={styles.list} aria-label="Your files">
              {found.map((file) => (
                <FileRow key={file.id} file={file} onAction={act} />
              ))}
            </ul>
          )}
          {list !== null && list.length > 0 && found.length === 0 && <p className={styles.none}>No file has “{query}” in its name.</p>}
        </div>
      </div>
      <DropZone onFiles={add} title="Drop files to upload them" />
      {opened && <FileDialog file={opened} onAction={act} onClose={() => setOpen(null)} />}
      {confirm && (
        <ConfirmDialog
          title="Delete this file?"
          action="Delete"
          danger
          onClose={() => setConfirm(null)}
          onConfirm={() => {
            deleteLater(confirm)
            setConfirm(null)
            setOpen(null)
          }}
        >
          <p>
            <strong>{confirm.name}</strong> and everything read from it will be removed. Answers that used it stay, but their sources can no longer
            be opened.
          </p>
        </ConfirmDialog>
      )}
    </div>
  )
}

const NONE: readonly FileRecord[] = []

async function tell(file: FileRecord, action: 'cancel' | 'retry'): Promise<void> {
  const askedAt = Date.now()
  try {
    putRecord(await request<FileRecord>(`/api/files/${file.id}/${action}`, { method: 'POST' }), askedAt)
  } catch (error) {
    toast(describeError(error), { tone: 'error' })
  }
}

/** Newest first, without what is being deleted. Null until the first answer. */
function useFileList(): { list: readonly FileRecord[] | null; error: unknown; reload: () => void } {
  const { byId, listed } = useStore(files)
  const hidden = useStore(deleting)
  const [error, setError] = useState<unknown>(null)
  const [round, setRound] = useState(0)
  useEffect(() => {
    let current = true
    loadFiles().then(
      () => current && setError(null),
      (reason: unknown) => current && setError(reason),
    )
    return () => {
      current = false
    }
  }, [round])
  const list = useMemo(() => {
    if (!listed) return null
    // An upload that goes on in this tab has a row of its own.
    const shown = [...byId.values()].filter((file) => !hidden.has(file.id) && file.state !== 'uploading')
    return shown.toSorted((a, b) => b.created_at.localeCompare(a.created_at))
  }, [byId, listed, hidden])
  return {
    list,
    error,
    reload: () => {
      setError(null)
      setRound((old) => old + 1)
    },
  }
}

function useFound(list: readonly FileRecord[], query: string): readonly FileRecord[] {
  return useMemo(() => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean)
    return words.length === 0 ? list : list.filter((file) => words.every((word) => file.name.toLowerCase().includes(word)))
  }, [list, query])
}

function useUnfinished() {
  const all = useStore(uploads)
  return useMemo(() => all.filter((upload) => upload.state !== 'done'), [all])
}

function Empty({ onUpload }: { onUpload: () => void }) {
  return (
    <div className={styles.empty}>
      <IconFile aria-hidden />
      <h2>No files yet</h2>
      <p>Upload a document, a spreadsheet, a mail or a picture and ask about it. You can ask about the first pages while the rest is still being read.</p>
      <Button variant="primary" icon={<IconUpload aria-hidden />} onClick={onUpload}>
        Upload a file
      </Button>
    </div>
  )
}

/** The summary of a file: asked for, watched while its parts are made, then read, with a way to each page it is from. */
import { useEffect, useState, type ReactNode } from 'react'
import { describeError, patchResource, request, useResource, type FileRecord, type FileSummary as Summary } from '@/shared/api'
import { CopyButton } from '@/shared/markdown'
import { Button, Notice, Skeleton } from '@/shared/ui'
import styles from './FileSummary.module.css'
import { asPlainText, partsOf, toldOf } from './summary'

const POLL_MS = 1500

export interface FileSummaryProps {
  file: FileRecord
  onPage: (page: number) => void
}

export function FileSummary({ file, onPage }: FileSummaryProps) {
  const path = `/api/files/${file.id}/summary`
  const key = `file-summary:${file.id}`
  const { data, error, reload } = useResource<Summary>(key, () => request(path))
  const [busy, setBusy] = useState(false)
  const [refused, setRefused] = useState<unknown>(null)
  const working = data?.state === 'working'
  useEffect(() => {
    if (!working) return
    const timer = setInterval(reload, POLL_MS)
    return () => clearInterval(timer)
  }, [working, reload])

  const ask = async () => {
    setBusy(true)
    setRefused(null)
    try {
      const begun = await request<Summary>(path, { method: 'POST' })
      patchResource<Summary>(key, () => begun)
    } catch (reason) {
      setRefused(reason)
    } finally {
      setBusy(false)
    }
  }
  const askButton = (label: string) => (
    <Button size="s" busy={busy} onClick={() => void ask()}>
      {label}
    </Button>
  )
  return (
    <section className={styles.summary} aria-label="Summary">
      <h3>
        Summary
        {data?.state === 'ready' && <CopyButton label="Copy the summary" text={() => asPlainText(file.name, data)} />}
      </h3>
      {!data && (error ? <Notice tone="danger" actions={<Button size="s" onClick={reload}>Try again</Button>}>{describeError(error)}</Notice> : <Skeleton lines={[90, 70]} />)}
      {data?.state === 'none' && (
        <div className={styles.empty}>
          <p>Nobody has asked for a summary of this file yet.</p>
          {askButton('Summarise')}
        </div>
      )}
      {data && working && <Working summary={data} />}
      {data?.state === 'failed' && (
        <Notice tone="danger" live actions={askButton('Try again')}>
          {data.error?.message ?? 'The summary could not be made.'}
        </Notice>
      )}
      {data?.state === 'ready' && data.outdated && (
        <Notice tone="warn" actions={askButton('Make it anew')}>
          More of the file was read after this summary was made.
        </Notice>
      )}
      {refused !== null && (
        <Notice tone="danger" live>
          {describeError(refused)}
        </Notice>
      )}
      {data?.state === 'ready' && <Text summary={data} onPage={onPage} />}
      {data && data.sections.some((section) => section.text) && data.sections.length > 1 && <Sections summary={data} onPage={onPage} />}
    </section>
  )
}

function Working({ summary }: { summary: Summary }) {
  const { steps, steps_done: done } = summary
  return (
    <div className={styles.working}>
      <progress aria-label="Summary" max={Math.max(1, steps)} value={steps === 0 ? undefined : done} />
      <p role="status">{toldOf(summary)}</p>
    </div>
  )
}

function Text({ summary, onPage }: { summary: Summary; onPage: (page: number) => void }) {
  return (
    <>
      {summary.sentences.length === 0 && <p className={styles.note}>The model had nothing to say of it.</p>}
      <p className={styles.text} dir="auto">
        {summary.sentences.map((sentence, index) => (
          // oxlint-disable-next-line react/no-array-index-key -- a summary does not change
          <span key={index}>
            {sentence.text}
            <Pages pages={sentence.pages} matched={sentence.matched} onPage={onPage} />{' '}
          </span>
        ))}
      </p>
      <p className={styles.note}>{toldOf(summary)}</p>
    </>
  )
}

function Sections({ summary, onPage }: { summary: Summary; onPage: (page: number) => void }) {
  return (
    <details className={styles.sections}>
      <summary>By section</summary>
      <ol>
        {summary.sections.map((section) => (
          <li key={`${section.first_page}-${section.last_page}-${section.title}`}>
            <h4 dir="auto">
              {section.title || 'Without a title'} <PageButton page={section.first_page} to={section.last_page} onPage={onPage} />
            </h4>
            {section.text ? (
              <p dir="auto">
                {partsOf(section.text).map((part, index): ReactNode =>
                  typeof part === 'string' ? part : (
                    // oxlint-disable-next-line react/no-array-index-key -- a summary does not change
                    <Pages key={index} pages={part} onPage={onPage} />
                  ),
                )}
              </p>
            ) : (
              <p className={styles.note}>Not made yet</p>
            )}
          </li>
        ))}
      </ol>
    </details>
  )
}

function Pages({ pages, matched, onPage }: { pages: readonly number[]; matched?: boolean; onPage: (page: number) => void }) {
  return pages.map((page) => <PageButton key={page} page={page} matched={matched ?? false} onPage={onPage} />)
}

interface PageButtonProps {
  page: number
  to?: number
  /** Found by the words of the sentence, which named no page itself. */
  matched?: boolean
  onPage: (page: number) => void
}

function PageButton({ page, to = page, matched, onPage }: PageButtonProps) {
  const pages = to === page ? `page ${page}` : `pages ${page} to ${to}`
  return (
    <button
      type="button"
      className={styles.page}
      data-matched={matched || undefined}
      aria-label={`Open ${pages}`}
      title={matched ? 'Found by the words of the sentence' : undefined}
      onClick={() => onPage(page)}
    >
      {to === page ? page : `${page}–${to}`}
    </button>
  )
}

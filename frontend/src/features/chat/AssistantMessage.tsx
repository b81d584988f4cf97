/** One answer: running, finished or failed. Only this component renders again while its text grows. */
import { lazy, memo, Suspense, useCallback, useState } from 'react'
import { CopyButton, doubtOf, Markdown } from '@/shared/markdown'
import { Button, IconButton, Menu, Notice } from '@/shared/ui'
import { IconBranch, IconError, IconInfo, IconMore, IconRetry } from '@/shared/ui/icons'
import type { Citation, Message, RunError, RunNotice } from '@/shared/api'
import { sourceName, sourcePlace } from '@/shared/words'
import { BranchSwitcher } from './BranchSwitcher'
import styles from './Message.module.css'
import { noticeText } from './notices'
import { RunStatus } from './RunStatus'
import { isFinal } from './thread'
import { useLiveRun } from './useLiveRun'

const RunDetails = lazy(() => import('@/features/runs'))

export interface AssistantMessageProps {
  message: Message
  siblings: readonly string[]
  modelName: string | null
  /** The last answer keeps its actions in sight. */
  last: boolean
  onCite: (citation: Citation, all: readonly Citation[]) => void
  onRegenerate: (message: Message) => void
  onSelect: (messageId: string) => void
  onBranch: (message: Message) => void
}

export const AssistantMessage = memo(function AssistantMessage(props: AssistantMessageProps) {
  const { message, last, onCite } = props
  const running = !isFinal(message)
  const live = useLiveRun(running ? message.run_id : null)
  const view = live?.view
  // Until the stream has caught up, the stored part is better than nothing.
  const text = running ? view?.text || message.text : message.text
  const citations = running ? (view?.citations ?? message.citations) : message.citations
  const cite = useCallback((citation: Citation) => onCite(citation, citations), [onCite, citations])
  // A runner of the version before ends its answers without any while it is being replaced.
  const notices = view?.notices ?? message.notices ?? []
  const over = !running || view?.ended === true
  const error = message.error ?? (view?.ended ? view.error : null)
  return (
    <article className={styles.assistant} aria-label="Answer" aria-busy={!over} data-last={last || undefined}>
      {text !== '' && (
        <div className={styles.answer} data-testid="answer">
          <Markdown text={text} streaming={!over} citations={citations} onCite={cite} />
        </div>
      )}
      {!over && <RunStatus message={message} live={live} started={text !== ''} />}
      {over && <Outcome {...props} error={error} text={text} />}
      {over && <Sources citations={citations} onCite={cite} />}
      <Notices notices={notices} />
      {over ? <Footer {...props} text={text} /> : <OtherVersions {...props} />}
    </article>
  )
})

function Outcome({ message, error, text, onRegenerate }: AssistantMessageProps & { error: RunError | null; text: string }) {
  const again = (
    <Button size="s" icon={<IconRetry aria-hidden />} onClick={() => onRegenerate(message)}>
      Try again
    </Button>
  )
  switch (message.status) {
    case 'failed':
      return (
        <Notice tone="danger" icon={<IconError aria-hidden />} actions={again}>
          {error?.message ?? 'The answer could not be finished.'}
          {text !== '' && ' What was written so far is kept.'}
        </Notice>
      )
    case 'cancelled':
      return <p className={styles.aside}>{text === '' ? 'Stopped before it began.' : 'You stopped this answer.'}</p>
    case 'incomplete':
      // An answer that broke off keeps its text and says why; only one without an error was cut at its limit.
      return error ? (
        <Notice tone="danger" icon={<IconError aria-hidden />} actions={again}>
          {error.message}
        </Notice>
      ) : (
        <p className={styles.aside}>The answer reached its length limit and ends here.</p>
      )
    default:
      return text === '' && message.status === 'completed' ? (
        <Notice actions={again}>The model gave an empty answer. Another wording may help.</Notice>
      ) : null
  }
}

/** What the answer rests on, for those who do not follow each mark, and for answers that set none. */
function Sources({ citations, onCite }: { citations: readonly Citation[]; onCite: (citation: Citation) => void }) {
  if (citations.length === 0) return null
  const matched = citations.every((citation) => citation.attributed)
  return (
    <div className={styles.sources} role="group" aria-label="Sources">
      <p className={styles.sourcesTitle}>{matched ? 'Matching passages (the answer names no source itself)' : 'Sources'}</p>
      <ul className={styles.sourceList}>
        {citations.map((citation) => (
          <li key={citation.n}>
            <button type="button" className={styles.source} onClick={() => onCite(citation)}>
              <span className={styles.sourceNumber}>{citation.n}</span>
              <span className={styles.sourceName}>{sourceName(citation)}</span>
              <span className={styles.sourcePage}>{sourcePlace(citation)}</span>
            </button>
            <Doubt text={doubtOf(citation)} />
          </li>
        ))}
      </ul>
    </div>
  )
}

function Doubt({ text }: { text: string }) {
  if (text === '') return null
  return (
    <p className={styles.doubt} dir="auto">
      {text}
    </p>
  )
}

function Notices({ notices }: { notices: readonly RunNotice[] }) {
  return notices.map((notice, index) => (
    // oxlint-disable-next-line react/no-array-index-key -- notices are only ever appended
    <p key={index} className={styles.aside}>
      <IconInfo aria-hidden />
      <span>{noticeText(notice)}</span>
    </p>
  ))
}


/** While an answer is written, the earlier ones can be read. */
function OtherVersions({ message, siblings, onSelect }: AssistantMessageProps) {
  if (siblings.length < 2) return null
  return (
    <div className={styles.actions}>
      <BranchSwitcher id={message.id} siblings={siblings} what="answer" onSelect={onSelect} />
    </div>
  )
}

function Footer({ message, siblings, modelName, text, onRegenerate, onSelect, onBranch }: AssistantMessageProps & { text: string }) {
  const [details, setDetails] = useState(false)
  return (
    <footer className={styles.actions}>
      <BranchSwitcher id={message.id} siblings={siblings} what="answer" onSelect={onSelect} />
      {text !== '' && <CopyButton label="Copy answer" text={() => text} />}
      <IconButton size="s" label="Answer again" onClick={() => onRegenerate(message)}>
        <IconRetry />
      </IconButton>
      <Menu
        label="More for this answer"
        renderTrigger={(trigger) => (
          <IconButton size="s" label="More" {...trigger}>
            <IconMore />
          </IconButton>
        )}
        items={[
          { key: 'branch', label: 'Branch into a new conversation', icon: <IconBranch />, onSelect: () => onBranch(message) },
          ...(message.run_id ? [{ key: 'details', label: 'About this answer', icon: <IconInfo />, onSelect: () => setDetails(true) }] : []),
        ]}
      />
      {modelName && <span className={styles.model}>{modelName}</span>}
      {details && message.run_id && (
        <Suspense fallback={null}>
          <RunDetails runId={message.run_id} onClose={() => setDetails(false)} />
        </Suspense>
      )}
    </footer>
  )
}

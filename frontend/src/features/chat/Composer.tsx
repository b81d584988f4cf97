/** Where a question is written: text, attachments, model, send and stop. Keeps its draft; leaves sending to its parent. */
import { useEffect, useImperativeHandle, useRef, useState, type Ref } from 'react'
import { Attachments, type Attachment, type AttachmentsApi } from '@/features/files'
import { useMediaQuery } from '@/shared/hooks'
import { IconButton } from '@/shared/ui'
import { IconAttach, IconSend, IconStop } from '@/shared/ui/icons'
import type { Id } from '@/shared/api'
import styles from './Composer.module.css'
import { emptyDraft, offeredText, readDraft, writeDraft, type Draft } from './drafts'
import { ModelPicker } from './ModelPicker'
import type { ModelChoice } from './models'

export interface ComposerApi {
  focus: () => void
  addFiles: (files: readonly File[]) => void
  /** Put text in, if there is none. */
  suggest: (text: string) => void
}

export interface ComposerProps {
  conversationId: Id | null
  choice: ModelChoice
  /** An answer is being written or waits to be sent: the button stops instead of sending. */
  busy: boolean
  onStop: () => void
  onSend: (text: string, attachments: readonly Attachment[]) => void
  onEditLast: () => void
  ref?: Ref<ComposerApi>
}

const SAVE_MS = 300

export function Composer({ conversationId, choice, busy, onStop, onSend, onEditLast, ref }: ComposerProps) {
  const area = useRef<HTMLTextAreaElement>(null)
  const files = useRef<AttachmentsApi>(null)
  const { draft, setDraft, clear } = useDraft(conversationId)
  const touch = useMediaQuery('(pointer: coarse)')
  const uploading = draft.attachments.some((item) => item.state === 'uploading')
  const broken = draft.attachments.some((item) => item.state === 'failed')
  const empty = draft.text.trim() === '' && draft.attachments.length === 0
  const blocked = blockOf({ uploading, broken, needsText: draft.text.trim() === '' && draft.attachments.length > 0 })

  useImperativeHandle(ref, () => ({
    focus: () => area.current?.focus(),
    addFiles: (list) => files.current?.add(list),
    suggest: (text) => {
      setDraft((old) => (old.text === '' ? { ...old, text } : old))
      area.current?.focus()
    },
  }))

  const submit = () => {
    if (busy || empty || blocked) return
    onSend(draft.text.trim(), draft.attachments)
    clear()
    area.current?.focus()
  }
  const onKeyDown = (event: React.KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.nativeEvent.isComposing) return
    const sends = event.key === 'Enter' && !event.shiftKey && (!touch || event.ctrlKey || event.metaKey)
    if (sends) {
      event.preventDefault()
      submit()
    } else if (event.key === 'ArrowUp' && draft.text === '' && !event.altKey && !event.shiftKey) {
      event.preventDefault()
      onEditLast()
    }
  }
  const onPaste = (event: React.ClipboardEvent) => {
    const pasted = [...event.clipboardData.files]
    if (pasted.length === 0) return
    event.preventDefault()
    files.current?.add(pasted)
  }
  return (
    <form
      className={styles.composer}
      aria-label="Ask a question"
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      <Attachments
        ref={files}
        value={draft.attachments}
        onChange={(update) => setDraft((old) => ({ ...old, attachments: update(old.attachments) }))}
        conversationId={conversationId}
      />
      <div className={styles.grow} data-text={draft.text}>
        <textarea
          ref={area}
          className={styles.area}
          dir="auto"
          rows={1}
          aria-label="Your question"
          placeholder="Ask anything"
          enterKeyHint={touch ? 'enter' : 'send'}
          value={draft.text}
          onChange={(event) => setDraft((old) => ({ ...old, text: event.target.value }))}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
      </div>
      <div className={styles.row}>
        <IconButton label="Attach files" onClick={() => files.current?.choose()}>
          <IconAttach />
        </IconButton>
        <ModelPicker choice={choice} />
        <span className={styles.note} role="status">
          {empty ? '' : blocked}
        </span>
        {busy ? (
          <IconButton label="Stop the answer" shortcut="Escape" variant="solid" onClick={onStop}>
            <IconStop className={styles.stop} />
          </IconButton>
        ) : (
          <IconButton label="Send" variant="solid" type="submit" disabled={empty || blocked !== ''}>
            <IconSend />
          </IconButton>
        )}
      </div>
    </form>
  )
}

function blockOf({ uploading, broken, needsText }: { uploading: boolean; broken: boolean; needsText: boolean }): string {
  if (broken) return 'Remove the failed file, or try it again.'
  if (uploading) return 'Uploading…'
  return needsText ? 'Write what you want to know about the files.' : ''
}

interface DraftState {
  draft: Draft
  setDraft: (update: (old: Draft) => Draft) => void
  /** Sent: forget it now, before anything else is rendered. */
  clear: () => void
}

/** The draft of one conversation, saved a moment after each change and at once when another one is opened. */
function useDraft(conversationId: Id | null): DraftState {
  const [state, setState] = useState(() => ({ id: conversationId, draft: readDraft(conversationId) }))
  if (state.id !== conversationId) setState({ id: conversationId, draft: readDraft(conversationId) })
  const latest = useRef(state)
  useEffect(() => {
    latest.current = state
    const timer = setTimeout(() => writeDraft(state.id, state.draft), SAVE_MS)
    return () => clearTimeout(timer)
  }, [state])
  useEffect(() => {
    const save = () => writeDraft(conversationId, latest.current.draft)
    window.addEventListener('pagehide', save)
    return () => {
      window.removeEventListener('pagehide', save)
      save()
    }
  }, [conversationId])
  useEffect(
    () =>
      offeredText.subscribe(() => {
        const offered = offeredText.get()
        if (offered?.conversationId !== conversationId) return
        setState((old) => (old.draft.text === '' ? { ...old, draft: { ...old.draft, text: offered.text } } : old))
      }),
    [conversationId],
  )
  return {
    draft: state.draft,
    setDraft: (update) => setState((old) => ({ id: old.id, draft: update(old.draft) })),
    clear: () => {
      latest.current = { id: conversationId, draft: emptyDraft }
      setState(latest.current)
      writeDraft(conversationId, emptyDraft)
    },
  }
}

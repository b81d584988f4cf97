/** One question, its files, and its editor. */
import { memo, useEffect, useRef, useState } from 'react'
import { CopyButton } from '@/shared/markdown'
import { Button, IconButton } from '@/shared/ui'
import { IconEdit, IconFile } from '@/shared/ui/icons'
import type { Message, MessageFile } from '@/shared/api'
import { BranchSwitcher } from './BranchSwitcher'
import styles from './Message.module.css'

export interface UserMessageProps {
  message: Message
  siblings: readonly string[]
  editing: boolean
  onEdit: (messageId: string | null) => void
  /** False when it cannot be sent now; the editor then stays. */
  onSubmit: (message: Message, text: string) => boolean
  onSelect: (messageId: string) => void
}

export const UserMessage = memo(function UserMessage(props: UserMessageProps) {
  const { message, siblings, editing, onEdit, onSelect } = props
  if (editing) return <QuestionEditor {...props} />
  return (
    <article className={styles.user} aria-label="Your question">
      <MessageFiles files={message.files} />
      <div className={styles.bubble} dir="auto">
        {message.text}
      </div>
      <footer className={styles.actions}>
        <CopyButton label="Copy question" text={() => message.text} />
        <IconButton size="s" label="Edit question" onClick={() => onEdit(message.id)}>
          <IconEdit />
        </IconButton>
        <BranchSwitcher id={message.id} siblings={siblings} what="question" onSelect={onSelect} />
      </footer>
    </article>
  )
})

export function MessageFiles({ files }: { files: readonly MessageFile[] }) {
  if (files.length === 0) return null
  return (
    <ul className={styles.files} aria-label="Files of this question">
      {files.map((file) => (
        <li key={file.id} className={styles.file}>
          <IconFile aria-hidden />
          <span className={styles.fileName}>{file.name}</span>
          {file.page_count !== null && <span className={styles.fileNote}>{file.page_count === 1 ? '1 page' : `${file.page_count} pages`}</span>}
        </li>
      ))}
    </ul>
  )
}

function QuestionEditor({ message, onEdit, onSubmit }: UserMessageProps) {
  const [text, setText] = useState(message.text)
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    area.current?.focus()
    area.current?.setSelectionRange(area.current.value.length, area.current.value.length)
  }, [])
  const unchanged = text.trim() === message.text.trim()
  const submit = () => {
    if (text.trim() === '' || unchanged) return
    if (onSubmit(message, text.trim())) onEdit(null)
  }
  return (
    <form
      className={styles.editor}
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      <MessageFiles files={message.files} />
      <textarea
        ref={area}
        dir="auto"
        aria-label="Edit your question"
        className={styles.editArea}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') {
            event.stopPropagation()
            onEdit(null)
          } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit()
        }}
      />
      <div className={styles.editFoot}>
        <p className={styles.editNote}>The old version stays; switch between them with the arrows.</p>
        <Button size="s" onClick={() => onEdit(null)}>
          Cancel
        </Button>
        <Button size="s" type="submit" variant="primary" disabled={text.trim() === '' || unchanged}>
          Send
        </Button>
      </div>
    </form>
  )
}

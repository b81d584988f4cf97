import { memo, useState } from 'react'
import type { Conversation } from '@/shared/api'
import { Link } from '@/shared/hooks'
import { IconButton, Menu, Spinner } from '@/shared/ui'
import { IconArchive, IconDelete, IconEdit, IconMore, IconPin, IconUnpin } from '@/shared/ui/icons'
import { addressOf, archive, removeConversation, renameConversation, titleOf, togglePin } from './actions'
import { Marked } from './Marked'
import styles from './Sidebar.module.css'

export interface ConversationRowProps {
  conversation: Conversation
  current: boolean
  /** What was searched for, to be marked in the title. */
  query: string
  onOpen: () => void
}

export const ConversationRow = memo(function ConversationRow({ conversation, current, query, onOpen }: ConversationRowProps) {
  const [renaming, setRenaming] = useState(false)
  if (renaming) return <RenameField conversation={conversation} onDone={() => setRenaming(false)} />
  const title = titleOf(conversation)
  return (
    <li className={styles.row} data-current={current || undefined}>
      <Link
        href={addressOf(conversation)}
        className={styles.link}
        dir="auto"
        title={title}
        aria-current={current ? 'page' : undefined}
        onClick={onOpen}
        onKeyDown={(event) => {
          if (event.key === 'F2') setRenaming(true)
          else if (event.key === 'Delete') removeConversation(conversation)
          else return
          event.preventDefault()
        }}
      >
        <Marked text={title} query={query} />
      </Link>
      {conversation.active_run_id && !current && (
        <span className={styles.running} title="An answer is being written">
          <Spinner label="An answer is being written" />
        </span>
      )}
      <span className={styles.rowMenu}>
        <Menu
          label={`Actions for ${title}`}
          align="end"
          renderTrigger={(trigger) => (
            <IconButton size="s" label={`Actions for ${title}`} {...trigger}>
              <IconMore />
            </IconButton>
          )}
          items={conversationMenu(conversation, () => setRenaming(true))}
        />
      </span>
    </li>
  )
})

export function conversationMenu(conversation: Conversation, onRename: () => void) {
  return [
    { key: 'rename', label: 'Rename', icon: <IconEdit />, onSelect: onRename },
    {
      key: 'pin',
      label: conversation.pinned ? 'Unpin' : 'Pin',
      icon: conversation.pinned ? <IconUnpin /> : <IconPin />,
      onSelect: () => togglePin(conversation),
    },
    { key: 'archive', label: 'Archive', icon: <IconArchive />, onSelect: () => archive(conversation) },
    { key: 'delete', label: 'Delete', icon: <IconDelete />, danger: true, separator: true, onSelect: () => removeConversation(conversation) },
  ]
}

function RenameField({ conversation, onDone }: { conversation: Conversation; onDone: () => void }) {
  const [title, setTitle] = useState(conversation.title)
  const save = () => {
    renameConversation(conversation, title)
    onDone()
  }
  return (
    <li className={styles.row}>
      <input
        // The person has just asked to type here.
        ref={(input) => input?.select()}
        className={styles.rename}
        aria-label="Title of the conversation"
        dir="auto"
        maxLength={200}
        value={title}
        onChange={(event) => setTitle(event.target.value)}
        onBlur={save}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && !event.nativeEvent.isComposing) save()
          else if (event.key === 'Escape') {
            event.stopPropagation()
            onDone()
          }
        }}
      />
    </li>
  )
}

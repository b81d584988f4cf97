import { useState } from 'react'
import { conversationList, conversationMenu, renameConversation, titleOf } from '@/features/conversations'
import { Link, useStore } from '@/shared/hooks'
import { IconButton, Menu } from '@/shared/ui'
import { IconChevronDown, IconMenu, IconNew, IconPin } from '@/shared/ui/icons'
import styles from './Shell.module.css'

export interface HeaderProps {
  conversationId: string | null
  /** Present when the sidebar is hidden. */
  onSidebar: (() => void) | null
}

/** The line above a conversation: its title with its menu, and the way back to the list where that is hidden. */
export function Header({ conversationId, onSidebar }: HeaderProps) {
  const conversation = useStore(conversationList, (list) => (conversationId ? list.byId.get(conversationId) : undefined))
  const [renaming, setRenaming] = useState(false)
  return (
    <header className={styles.header}>
      {onSidebar && (
        <IconButton label="Show conversations" shortcut="Ctrl+B" onClick={onSidebar}>
          <IconMenu />
        </IconButton>
      )}
      <div className={styles.titleBox}>
        {conversation && renaming && (
          <input
            ref={(input) => input?.select()}
            className={styles.titleField}
            aria-label="Title of the conversation"
            dir="auto"
            maxLength={200}
            defaultValue={conversation.title}
            onBlur={(event) => {
              renameConversation(conversation, event.target.value)
              setRenaming(false)
            }}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && !event.nativeEvent.isComposing) event.currentTarget.blur()
              if (event.key !== 'Escape') return
              event.preventDefault()
              setRenaming(false)
            }}
          />
        )}
        {conversation && !renaming && (
          <h1 className={styles.titleHeading}>
            <Menu
              label="Actions for this conversation"
              items={conversationMenu(conversation, () => setRenaming(true))}
              renderTrigger={(trigger) => (
                <button type="button" className={styles.title} {...trigger}>
                  {conversation.pinned && <IconPin aria-label="Pinned" />}
                  <span dir="auto" className={styles.titleText}>
                    {titleOf(conversation)}
                  </span>
                  <IconChevronDown aria-hidden />
                </button>
              )}
            />
          </h1>
        )}
      </div>
      {onSidebar && (
        <Link href="/" className={styles.newLink} aria-label="New conversation" title="New conversation">
          <IconNew aria-hidden />
        </Link>
      )}
    </header>
  )
}

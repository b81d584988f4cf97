/** What the sidebar and the header do to a conversation, with words for the person. */
import { describeError, type Conversation } from '@/shared/api'
import { currentPath, navigate } from '@/shared/hooks'
import { toast } from '@/shared/ui'
import { deleteConversation, restoreConversation, updateConversation } from './store'

export const UNTITLED = 'New conversation'

export const titleOf = (conversation: Pick<Conversation, 'title'>): string => conversation.title.trim() || UNTITLED

export const addressOf = (conversation: Pick<Conversation, 'id'>): string => `/c/${conversation.id}`

function failed(what: string) {
  return (error: unknown) => void toast(`${what} ${describeError(error)}`, { tone: 'error' })
}

export function renameConversation(conversation: Conversation, title: string): void {
  const trimmed = title.replace(/\s+/g, ' ').trim()
  if (trimmed === '' || trimmed === conversation.title) return
  updateConversation(conversation.id, { title: trimmed }).catch(failed('The title was not saved.'))
}

export function togglePin(conversation: Conversation): void {
  updateConversation(conversation.id, { pinned: !conversation.pinned }).catch(failed('The pin was not saved.'))
}

export function archive(conversation: Conversation): void {
  leave(conversation)
  updateConversation(conversation.id, { archived: true }).catch(failed('The conversation was not archived.'))
  toast(`“${titleOf(conversation)}” is archived`, { action: { label: 'Undo', run: () => unarchive(conversation) } })
}

export function unarchive(conversation: Conversation): void {
  updateConversation(conversation.id, { archived: false }).catch(failed('The conversation was not taken out of the archive.'))
}

/** At once, with a way back: the server keeps it for thirty days. */
export function removeConversation(conversation: Conversation): void {
  leave(conversation)
  const deletion = deleteConversation(conversation.id)
  deletion.catch(failed('The conversation was not deleted.'))
  const undo = () => {
    // Never overtakes the deletion that it takes back.
    deletion.then(() => restoreConversation(conversation.id)).catch(failed('The conversation was not restored.'))
  }
  toast(`“${titleOf(conversation)}” is deleted`, { action: { label: 'Undo', run: undo } })
}

function leave(conversation: Conversation): void {
  if (currentPath() === addressOf(conversation)) navigate('/')
}

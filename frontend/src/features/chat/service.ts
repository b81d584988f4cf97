/** What a person can do in a conversation, and how this tab follows what others do. Wires outbox, sender, threads and streams. */
import {
  describeError,
  invalidate,
  onNotification,
  onSync,
  request,
  type Conversation,
  type Id,
  type Message,
  type MessageFile,
  type Run,
} from '@/shared/api'
import { currentPath, navigate, newId } from '@/shared/hooks'
import { announce, toast } from '@/shared/ui'
import { LiveRuns } from '@/stream'
import { patchConversation, upsertConversation } from '../conversations/store'
import { offerDraft } from './drafts'
import { dequeue, enqueue, isLocalId, newLocalId, outbox, patchEntry, type OutboxEntry } from './outbox'
import { Sender } from './sender'
import { isFinal } from './thread'
import { findRun, followHead, knownThread, loadThread, mergeMessages, openEmptyThread } from './threads'

export const pathOfConversation = (id: Id): string => `/c/${id}`

export const liveRuns = new LiveRuns({
  onEnd(runId, message) {
    const answer = message ?? findRun(runId)
    if (!answer) return
    patchConversation(answer.conversation_id, { active_run_id: null })
    if (message) mergeMessages(message.conversation_id, [message])
    else void loadThread(answer.conversation_id)
    announceEnd(answer)
  },
  onRefused(runId) {
    const answer = findRun(runId)
    if (answer) void loadThread(answer.conversation_id)
  },
})

function announceEnd(answer: Message): void {
  if (answer.status === 'failed') announce(`The answer failed. ${answer.error?.message ?? ''}`)
  else if (answer.status === 'cancelled') announce('The answer was stopped.')
  else announce(`Answer: ${answer.text.slice(0, 1500)}`)
}

/** Entries that a person stopped while their post was on its way: their runs are cancelled as soon as they are known. */
const stopped = new Set<Id>()

/** Real id -> the local one it was opened under, so that the page of a new conversation stays the same page. */
const aliases = new Map<Id, Id>()

/** Identity of a conversation's view on screen; outlives the change from a local to a real id. */
export const viewKey = (id: Id): Id => aliases.get(id) ?? id

export const sender = new Sender({
  onConversation(localId, conversation) {
    aliases.set(conversation.id, localId)
    upsertConversation(conversation)
    openEmptyThread(conversation.id)
    if (currentPath() === pathOfConversation(localId)) navigate(pathOfConversation(conversation.id), { replace: true })
  },
  onPosted(entry, result) {
    const { answer, run } = result
    const messages = 'question' in result ? [result.question, answer] : [answer]
    mergeMessages(entry.conversationId, messages, answer.id)
    const running = !isFinal(answer)
    patchConversation(entry.conversationId, {
      head_message_id: answer.id,
      active_run_id: running ? run.id : null,
      updated_at: answer.created_at,
    })
    if (stopped.delete(entry.clientId)) void cancelRun(run.id)
    else if (running) announce('The answer is being written.')
  },
})

export interface Outgoing {
  conversationId: Id | null
  text: string
  parentId: Id | null
  files: MessageFile[]
  model: string
}

/** Keep the message and send it; a new conversation is opened on screen at once, under a local address. */
export function sendMessage({ conversationId, text, parentId, files, model }: Outgoing): void {
  const id = conversationId ?? newLocalId()
  enqueue({ kind: 'post', conversationId: id, text, parentId, files, model, answerId: null })
  if (!conversationId) {
    openEmptyThread(id)
    navigate(pathOfConversation(id))
  }
  sender.flush()
}

export function regenerate(answer: Message, model: string): void {
  const { conversation_id: conversationId, parent_id: parentId, id: answerId } = answer
  enqueue({ kind: 'regenerate', conversationId, text: '', parentId, files: [], model, answerId })
  sender.flush()
}

export async function cancelRun(runId: Id): Promise<void> {
  try {
    await request<Run>(`/api/runs/${runId}/cancel`, { method: 'POST', body: {} })
  } catch (error) {
    toast(`The answer could not be stopped. ${describeError(error)}`, { tone: 'error' })
  }
}

/** Stop an entry whose answer has no run yet: take it back, or cancel its run as soon as that is known. */
export function stopEntry(entry: OutboxEntry): void {
  if (sender.inFlight === entry.clientId && !isLocalId(entry.conversationId)) stopped.add(entry.clientId)
  else discardEntry(entry)
}

/** Take an entry out of the outbox, for another wording; its text goes back to the composer. */
export function discardEntry(entry: OutboxEntry): void {
  dequeue(entry.clientId)
  const isNew = isLocalId(entry.conversationId)
  if (entry.kind === 'post') offerDraft(isNew ? null : entry.conversationId, entry.text)
  if (isNew && currentPath() === pathOfConversation(entry.conversationId)) navigate('/')
}

/**
 * Send a refused entry once more, perhaps to another model. As a new one where the server may remember the refused id with
 * other contents.
 */
export function retryEntry(entry: OutboxEntry, model: string = entry.model): void {
  if (model !== entry.model) patchEntry(entry.clientId, { model })
  if (entry.refusal?.code === 'idempotency_mismatch') patchEntry(entry.clientId, { clientId: newId() })
  const current = outbox.get().find((item) => item.createdAt === entry.createdAt)
  if (current) sender.retry(current.clientId)
}

export async function branchFrom(message: Message): Promise<void> {
  const { conversation_id: conversationId, id } = message
  try {
    const body = { message_id: id }
    const copy = await request<Conversation>(`/api/conversations/${conversationId}/branch`, { method: 'POST', body })
    upsertConversation(copy)
    navigate(pathOfConversation(copy.id))
  } catch (error) {
    toast(`The branch could not be made. ${describeError(error)}`, { tone: 'error' })
  }
}

/** Follow other tabs and devices. Returns how to stop. */
export function startChatSync(): () => void {
  const stops = [
    sender.start(),
    onNotification('conversation', ({ conversation }) => {
      upsertConversation(conversation)
      // The answer to our own post, which is on its way, brings the same and more.
      const ours = outbox.get().some((entry) => entry.conversationId === conversation.id && entry.clientId === sender.inFlight)
      if (!ours) followHead(conversation.id, conversation.head_message_id)
    }),
    onNotification('run', ({ run }) => onRun(run)),
    onNotification('model', ({ model }) => {
      invalidate('models')
      if (model.state === 'ready') retryRefused('no_replica')
    }),
    onSync(() => {
      const id = openConversationId()
      if (id && knownThread(id)) void loadThread(id)
      retryRefused('not_authenticated')
      sender.flush()
    }),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}

function onRun(run: Run): void {
  const known = knownThread(run.conversation_id)
  const over = run.finished_at !== null
  patchConversation(run.conversation_id, { active_run_id: over ? null : run.id })
  if (!known) return
  const answer = known.messages.get(run.answer_id)
  // Most likely our own, whose post is about to be answered; if not, its end is notified as well.
  if (!answer && sender.inFlight !== null) return
  // A run from elsewhere, or an end that no stream of this tab has brought.
  if (!answer || (over && !isFinal(answer) && !liveRuns.store(run.id))) void loadThread(run.conversation_id, run.answer_id)
}

/** What stood in the way of these entries is gone. */
function retryRefused(code: string): void {
  for (const entry of outbox.get()) if (entry.refusal?.code === code) sender.retry(entry.clientId)
}

export function openConversationId(): Id | null {
  const id = /^\/c\/([^/]+)$/.exec(currentPath())?.[1] ?? null
  return id && !isLocalId(id) ? id : null
}

/** The tree of a conversation's messages and the one branch of it that is on screen. Pure: no storage, no network. */
import type { Id, Message } from '@/shared/api'

export interface Thread {
  messages: ReadonlyMap<Id, Message>
  headId: Id | null
}

export const emptyThread: Thread = { messages: new Map(), headId: null }

/** Messages from the first to the head. A head that is unknown falls back to the newest message. */
export function pathOf(thread: Thread): Message[] {
  const { messages, headId } = thread
  const path: Message[] = []
  const seen = new Set<Id>()
  let at = (headId ? messages.get(headId) : undefined) ?? newest(messages.values())
  while (at && !seen.has(at.id)) {
    seen.add(at.id)
    path.push(at)
    at = at.parent_id ? messages.get(at.parent_id) : undefined
  }
  return path.toReversed()
}

/**
 * Messages with the same parent and role, oldest first: the versions of an edited question or a repeated answer. Messages
 * with one version only are left out, so that a change somewhere gives most of them nothing new.
 */
export function siblingIndex(thread: Thread): Map<Id, readonly Id[]> {
  const groups = new Map<string, Message[]>()
  for (const message of thread.messages.values()) {
    const key = `${message.parent_id ?? ''}/${message.role}`
    const group = groups.get(key)
    if (group) group.push(message)
    else groups.set(key, [message])
  }
  const index = new Map<Id, readonly Id[]>()
  for (const group of groups.values()) {
    if (group.length < 2) continue
    const ids = group.toSorted(bySeq).map((message) => message.id)
    for (const id of ids) index.set(id, ids)
  }
  return index
}

/** The end of the branch through `id` that was written last. */
export function leafOf(thread: Thread, id: Id): Id {
  const children = new Map<Id, Message[]>()
  for (const message of thread.messages.values()) {
    if (!message.parent_id) continue
    const siblings = children.get(message.parent_id)
    if (siblings) siblings.push(message)
    else children.set(message.parent_id, [message])
  }
  const leaves: Message[] = []
  const queue = [thread.messages.get(id)]
  for (let next = queue.pop(); next; next = queue.pop()) {
    const below = children.get(next.id)
    if (below) queue.push(...below)
    else leaves.push(next)
  }
  return newest(leaves)?.id ?? id
}

/**
 * Add or replace messages. A final record is never overtaken by an older one of the same message that says it still runs:
 * answers of slow requests arrive after the end of the stream.
 */
export function withMessages(thread: Thread, incoming: readonly Message[]): Thread {
  let changed: Map<Id, Message> | null = null
  for (const message of incoming) {
    const old = (changed ?? thread.messages).get(message.id)
    if (old && (isSame(old, message) || (isFinal(old) && !isFinal(message)))) continue
    changed ??= new Map(thread.messages)
    changed.set(message.id, message)
  }
  return changed ? { ...thread, messages: changed } : thread
}

const OPEN: ReadonlySet<Message['status']> = new Set(['queued', 'running', 'waiting_approval'])

export function isFinal(message: Message): boolean {
  return !OPEN.has(message.status)
}

/** Reading a conversation again brings mostly what is known: the old objects stay, so that nothing renders again for them. */
function isSame(a: Message, b: Message): boolean {
  return (
    a.status === b.status &&
    a.text === b.text &&
    a.run_id === b.run_id &&
    a.finished_at === b.finished_at &&
    a.files.length === b.files.length &&
    a.files.every((file, at) => file.state === b.files[at]?.state && file.page_count === b.files[at]?.page_count)
  )
}

const bySeq = (a: Message, b: Message): number => a.seq - b.seq

function newest(messages: Iterable<Message>): Message | undefined {
  let best: Message | undefined
  for (const message of messages) if (!best || message.seq > best.seq) best = message
  return best
}

/** Unsent text and attachments, kept for each conversation until they are sent. */
import type { Attachment } from '@/features/files'
import { createStore, readStored, storedKeys, writeStored } from '@/shared/hooks'
import type { Id } from '@/shared/api'

export interface Draft {
  text: string
  attachments: readonly Attachment[]
}

interface StoredDraft extends Draft {
  savedAt: number
}

const PREFIX = 'draft.'
const KEEP_DAYS = 30
/** A longer text is kept in memory only: storage is small and shared with the outbox. */
const MAX_LENGTH = 200_000
export const emptyDraft: Draft = { text: '', attachments: [] }

function isDraft(value: unknown): value is StoredDraft {
  const draft = value as Partial<StoredDraft> | null
  return typeof draft?.text === 'string' && Array.isArray(draft.attachments) && typeof draft.savedAt === 'number'
}

export function readDraft(conversationId: Id | null): Draft {
  const draft = readStored(PREFIX + (conversationId ?? 'new'), isDraft)
  return draft ? { text: draft.text, attachments: draft.attachments } : emptyDraft
}

export function writeDraft(conversationId: Id | null, draft: Draft): void {
  const key = PREFIX + (conversationId ?? 'new')
  // Also unfinished uploads: they go on behind another conversation, or wait for their file to be chosen again after a reload.
  const { text, attachments } = draft
  if (text.trim() === '' && attachments.length === 0) writeStored(key, null)
  else if (text.length <= MAX_LENGTH) writeStored(key, { text, attachments, savedAt: Date.now() })
}

/** Text that comes back from the outbox: into the composer if it shows this conversation, and not over a newer draft. */
export const offeredText = createStore<{ conversationId: Id | null; text: string } | null>(null)

export function offerDraft(conversationId: Id | null, text: string): void {
  const draft = readDraft(conversationId)
  if (draft.text.trim() !== '') return
  writeDraft(conversationId, { ...draft, text })
  offeredText.set({ conversationId, text })
}

/** Drafts of conversations that nobody came back to. */
export function dropOldDrafts(now = Date.now()): void {
  for (const key of storedKeys(PREFIX)) {
    const draft = readStored(key, isDraft)
    if (!draft || now - draft.savedAt > KEEP_DAYS * 86_400_000) writeStored(key, null)
  }
}

export function forgetDrafts(): void {
  for (const key of storedKeys(PREFIX)) writeStored(key, null)
}

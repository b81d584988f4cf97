/** Order and headings of the conversation list. */
import type { Conversation } from '@/shared/api'

export interface Group {
  key: string
  label: string
  items: Conversation[]
}

const DAY = 86_400_000

/** Pinned first, then by the day of the last change, in the reader's own time zone. Archived ones are left out. */
export function groupConversations(all: Iterable<Conversation>, now = new Date(), locale?: string): Group[] {
  const groups = new Map<string, Group>()
  const shown = [...all].filter((item) => !item.archived && !item.deleted_at)
  for (const item of shown.toSorted(byNewest)) {
    const { key, label } = item.pinned ? { key: 'pinned', label: 'Pinned' } : headingOf(new Date(item.updated_at), now, locale)
    const group = groups.get(key)
    if (group) group.items.push(item)
    else groups.set(key, { key, label, items: [item] })
  }
  const pinned = groups.get('pinned')
  const rest = [...groups.values()].filter((group) => group !== pinned)
  return pinned ? [pinned, ...rest] : rest
}

function byNewest(a: Conversation, b: Conversation): number {
  return b.updated_at.localeCompare(a.updated_at) || b.id.localeCompare(a.id)
}

function headingOf(date: Date, now: Date, locale?: string): { key: string; label: string } {
  // Midnights, rounded: a day with a clock change has 23 or 25 hours.
  const days = Math.round((midnight(now) - midnight(date)) / DAY)
  if (days <= 0) return { key: 'today', label: 'Today' }
  if (days === 1) return { key: 'yesterday', label: 'Yesterday' }
  if (days <= 7) return { key: 'week', label: 'Previous 7 days' }
  if (days <= 30) return { key: 'month', label: 'Previous 30 days' }
  const sameYear = date.getFullYear() === now.getFullYear()
  const format = new Intl.DateTimeFormat(locale, sameYear ? { month: 'long' } : { month: 'long', year: 'numeric' })
  return { key: `${date.getFullYear()}-${date.getMonth()}`, label: format.format(date) }
}

function midnight(date: Date): number {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime()
}

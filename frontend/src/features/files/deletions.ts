/**
 * Deleting with a way back: the server deletes at once and for good, so for a few seconds only this tab hides the file.
 * A page that is closed in between sends what was decided.
 */
import { csrfToken, describeError, request, type FileRecord, type Id } from '@/shared/api'
import { createStore } from '@/shared/hooks'
import { toast } from '@/shared/ui'
import { dropRecord } from './records'

const UNDO_MS = 7_000

export const deleting = createStore<ReadonlySet<Id>>(new Set())
const timers = new Map<Id, ReturnType<typeof setTimeout>>()

export function deleteLater(file: FileRecord): void {
  deleting.set((old) => new Set(old).add(file.id))
  timers.set(
    file.id,
    setTimeout(() => void deleteNow(file), UNDO_MS),
  )
  toast(`${file.name} deleted`, { action: { label: 'Undo', run: () => undo(file.id) }, durationMs: UNDO_MS - 500 })
}

function undo(id: Id): void {
  clearTimeout(timers.get(id))
  timers.delete(id)
  reveal(id)
}

async function deleteNow(file: FileRecord): Promise<void> {
  timers.delete(file.id)
  try {
    await request(`/api/files/${file.id}`, { method: 'DELETE' })
    dropRecord(file.id)
  } catch (error) {
    toast(`${file.name} is still there. ${describeError(error)}`, { tone: 'error' })
  }
  reveal(file.id)
}

function reveal(id: Id): void {
  deleting.set((old) => {
    const next = new Set(old)
    next.delete(id)
    return next
  })
}

window.addEventListener('pagehide', () => {
  for (const [id, timer] of timers) {
    clearTimeout(timer)
    // An ordinary request would die with the page.
    void fetch(`/api/files/${id}`, { method: 'DELETE', keepalive: true, headers: { 'X-CSRFToken': csrfToken() } }).catch(() => undefined)
  }
  timers.clear()
})

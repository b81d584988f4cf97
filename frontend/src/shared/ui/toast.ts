/** Short messages at the edge of the screen. Any module may call `toast`; the shell shows them through <Toasts>. */
import { createStore } from '../hooks/store'

export interface ToastAction {
  label: string
  run: () => void
}

export interface Toast {
  id: number
  text: string
  tone: 'plain' | 'success' | 'error'
  action: ToastAction | null
  durationMs: number
}

const MOST = 4
let lastId = 0
export const toastStore = createStore<readonly Toast[]>([])

export function toast(text: string, options: Partial<Omit<Toast, 'id' | 'text'>> = {}): number {
  lastId += 1
  const tone = options.tone ?? 'plain'
  const action = options.action ?? null
  // A person needs longer to read an error, and time to reach for an action.
  const durationMs = options.durationMs ?? (action || tone === 'error' ? 8000 : 4000)
  const next: Toast = { id: lastId, text, tone, action, durationMs }
  toastStore.set((old) => [...old.filter((other) => other.text !== text), next].slice(-MOST))
  return lastId
}

export function dismissToast(id: number): void {
  toastStore.set((old) => old.filter((other) => other.id !== id))
}

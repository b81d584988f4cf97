import { useEffect, useRef } from 'react'

/** Shortcut -> action, e.g. `Ctrl+K` (Command on a Mac), `Ctrl+Shift+O`, `Escape`. Silent while a modal dialog is open. */
export function useHotkeys(keys: Record<string, (event: KeyboardEvent) => void>): void {
  const latest = useRef(keys)
  useEffect(() => {
    latest.current = keys
  })
  useEffect(() => {
    const listener = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]')) return
      const action = latest.current[nameOf(event)]
      if (action) action(event)
    }
    window.addEventListener('keydown', listener)
    return () => window.removeEventListener('keydown', listener)
  }, [])
}

function nameOf(event: KeyboardEvent): string {
  const key = event.key.length === 1 ? event.key.toUpperCase() : event.key
  const parts = [event.ctrlKey || event.metaKey ? 'Ctrl' : '', event.altKey ? 'Alt' : '', event.shiftKey ? 'Shift' : '', key]
  return parts.filter(Boolean).join('+')
}

export const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent)

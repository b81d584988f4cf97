/** Light, dark, or as the system has it. public/theme.js applies the stored choice before the first paint. */
import { createStore } from './store'

export type Theme = 'system' | 'light' | 'dark'
const KEY = 'parley.theme'

function read(): Theme {
  try {
    const value = localStorage.getItem(KEY)
    return value === 'light' || value === 'dark' ? value : 'system'
  } catch {
    return 'system'
  }
}

export const themeStore = createStore<Theme>(read())

export function setTheme(theme: Theme): void {
  themeStore.set(theme)
  if (theme === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
  try {
    // Plain text, not JSON: the script that runs before the first paint reads it.
    if (theme === 'system') localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, theme)
  } catch {
    // The choice then lasts until the page is closed.
  }
}

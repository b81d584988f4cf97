import { isMac } from '../hooks/useHotkeys'
import styles from './Shortcuts.module.css'

const SHORTCUTS: [string, string][] = [
  ['Enter', 'Send the question'],
  ['Shift+Enter', 'New line'],
  ['↑', 'Edit the last question (in the empty composer)'],
  ['Escape', 'Stop the answer, close a panel'],
  ['Ctrl+Shift+O', 'New conversation'],
  ['Ctrl+K', 'Search conversations'],
  ['Ctrl+B', 'Show or hide the sidebar'],
  ['F2', 'Rename the focused conversation'],
  ['Delete', 'Delete the focused conversation'],
  ['Ctrl+/', 'This list'],
]

/** Every key that does something, for the dialog and the settings. */
export function Shortcuts() {
  return (
    <dl className={styles.shortcuts}>
      {SHORTCUTS.map(([keys, what]) => (
        <div key={keys}>
          <dt>{what}</dt>
          <dd>
            {keys.split('+').map((key) => (
              <kbd key={key}>{isMac && key === 'Ctrl' ? '⌘' : key}</kbd>
            ))}
          </dd>
        </div>
      ))}
    </dl>
  )
}

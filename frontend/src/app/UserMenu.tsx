import type { Me } from '@/shared/api'
import { describeError, request, ApiError } from '@/shared/api'
import { navigate, setTheme, themeStore, useStore, type Theme } from '@/shared/hooks'
import { Menu, toast, type MenuItem } from '@/shared/ui'
import { IconDark, IconKeyboard, IconLight, IconMore, IconSettings, IconSignOut, IconSystem } from '@/shared/ui/icons'
import { endSession } from './session'
import styles from './Shell.module.css'

const THEMES: { value: Theme; label: string; icon: React.ReactNode }[] = [
  { value: 'system', label: 'As the system', icon: <IconSystem /> },
  { value: 'light', label: 'Light', icon: <IconLight /> },
  { value: 'dark', label: 'Dark', icon: <IconDark /> },
]

export function UserMenu({ me, onShortcuts }: { me: Me; onShortcuts: () => void }) {
  const theme = useStore(themeStore)
  const name = me.user.name || me.user.email
  const items: MenuItem[] = [
    { key: 'settings', label: 'Settings', icon: <IconSettings />, onSelect: () => navigate('/settings') },
    { key: 'shortcuts', label: 'Keyboard shortcuts', icon: <IconKeyboard />, onSelect: onShortcuts },
    ...THEMES.map(({ value, label, icon }, index) => ({
      key: value,
      label,
      icon,
      checked: theme === value,
      separator: index === 0,
      onSelect: () => setTheme(value),
    })),
    { key: 'out', label: 'Sign out', icon: <IconSignOut />, separator: true, onSelect: () => void signOut() },
  ]
  return (
    <Menu
      label="Your account"
      items={items}
      renderTrigger={(trigger) => (
        <button type="button" className={styles.user} {...trigger}>
          <span className={styles.avatar} aria-hidden>
            {initials(name)}
          </span>
          <span className={styles.userText}>
            <span className={styles.userName}>{name}</span>
            {me.user.name !== '' && <span className={styles.userMail}>{me.user.email}</span>}
          </span>
          <IconMore aria-hidden />
        </button>
      )}
    />
  )
}

async function signOut(): Promise<void> {
  try {
    await request('/_allauth/browser/v1/auth/session', { method: 'DELETE' })
  } catch (error) {
    // 401 is how the server confirms that nobody is signed in any more.
    if (!(error instanceof ApiError && error.status === 401)) {
      toast(`You are still signed in. ${describeError(error)}`, { tone: 'error' })
      return
    }
  }
  endSession()
}

function initials(name: string): string {
  const words = name.replace(/@.*/, '').split(/[\s._-]+/).filter(Boolean)
  const letters = words.length > 1 ? [words[0], words.at(-1)] : [words[0]]
  return letters.map((word) => [...(word ?? '?')][0]?.toUpperCase()).join('')
}

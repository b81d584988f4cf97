import { setTheme, themeStore, useStore, type Theme } from '@/shared/hooks'
import { IconDark, IconLight, IconSystem } from '@/shared/ui/icons'
import styles from './settings.module.css'

const THEMES = [
  { value: 'system', label: 'As the system', Icon: IconSystem },
  { value: 'light', label: 'Light', Icon: IconLight },
  { value: 'dark', label: 'Dark', Icon: IconDark },
] as const satisfies readonly { value: Theme; label: string; Icon: unknown }[]

export function Appearance() {
  const theme = useStore(themeStore)
  return (
    <fieldset className={styles.themes}>
      <legend>Theme</legend>
      {THEMES.map(({ value, label, Icon }) => (
        <label key={value}>
          <input type="radio" name="theme" value={value} checked={theme === value} onChange={() => setTheme(value)} />
          <span className={styles.preview} data-look={value} aria-hidden>
            <span />
            <span />
            <span />
          </span>
          <span className={styles.themeName}>
            <Icon aria-hidden />
            {label}
          </span>
        </label>
      ))}
    </fieldset>
  )
}

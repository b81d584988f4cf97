/** Settings of the person: profile, appearance, keys, shortcuts, and what this server is. Lazy-loaded by the shell. */
import { useEffect, useRef, type ComponentType } from 'react'
import type { Me, Site } from '@/shared/api'
import { Link } from '@/shared/hooks'
import { About } from './About'
import { Account } from './Account'
import { Appearance } from './Appearance'
import { ApiKeys } from './ApiKeys'
import { Keyboard } from './Keyboard'
import styles from './settings.module.css'

export interface SettingsPageProps {
  me: Me
  site: Site
  /** The part of the path after /settings/, '' for the first. */
  section: string
  onSection: (section: string) => void
  onMeChange: (me: Me) => void
  onSignedOut: () => void
}

const SECTIONS: readonly { key: string; label: string; Content: ComponentType<SettingsPageProps> }[] = [
  { key: '', label: 'Account', Content: Account },
  { key: 'appearance', label: 'Appearance', Content: Appearance },
  { key: 'keys', label: 'API keys', Content: ApiKeys },
  { key: 'keyboard', label: 'Keyboard', Content: Keyboard },
  { key: 'about', label: 'About', Content: About },
]

/** Whole page content right of the sidebar. */
export default function SettingsPage(props: SettingsPageProps) {
  const { section } = props
  const { key, label, Content } = SECTIONS.find((item) => item.key === section) ?? SECTIONS[0]!
  const title = useRef<HTMLHeadingElement>(null)
  const nav = useRef<HTMLElement>(null)
  const first = useRef(true)
  useEffect(() => {
    // Another section was opened from the list: what is read next is its heading.
    if (!first.current) title.current?.focus({ preventScroll: true })
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
    first.current = false
  }, [key])
  return (
    <div className={styles.page}>
      <div className={styles.content}>
        <h1 className={styles.title}>Settings</h1>
        <nav ref={nav} className={styles.nav} aria-label="Settings">
          {SECTIONS.map((item) => (
            <Link key={item.key} href={item.key ? `/settings/${item.key}` : '/settings'} aria-current={item.key === key ? 'page' : undefined}>
              {item.label}
            </Link>
          ))}
        </nav>
        <section className={styles.section} aria-labelledby="settings-section">
          <h2 id="settings-section" ref={title} tabIndex={-1} className={styles.heading}>
            {label}
          </h2>
          <Content {...props} />
        </section>
      </div>
    </div>
  )
}

import type { Me, Site } from '@/shared/api'

export interface SettingsPageProps {
  me: Me
  site: Site
  /** The part of the path after /settings/, '' for the first. */
  section: string
  onSection: (section: string) => void
  onMeChange: (me: Me) => void
  onSignedOut: () => void
}

/** Whole page content right of the sidebar. Lazy-loaded by the shell. */
export default function SettingsPage(_props: SettingsPageProps) {
  return <h1>Settings</h1>
}

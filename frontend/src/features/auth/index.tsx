import type { Site } from '@/shared/api'

export interface AuthPageProps {
  site: Site
  /** Called after a session exists; the shell then loads /api/me. */
  onSignedIn: () => void
}

/** Sign-in, and the first account when `site.setup_needed`. Lazy-loaded by the shell. */
export default function AuthPage({ site }: AuthPageProps) {
  return <h1>{site.name}</h1>
}

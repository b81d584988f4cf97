import { Component, type ErrorInfo, type ReactNode } from 'react'
import { Button } from '@/shared/ui'
import styles from './Shell.module.css'

interface Props {
  children: ReactNode
  /** Changes when the person goes elsewhere: the next page gets its chance. */
  resetKey: string
}

interface State {
  error: Error | null
  key: string
}

/** Catches what a page throws while rendering; a stale bundle after an update is the usual cause of a failed import. */
export class ErrorBoundary extends Component<Props, State> {
  override state: State = { error: null, key: this.props.resetKey }

  static getDerivedStateFromError(error: Error): Partial<State> {
    return { error }
  }

  static getDerivedStateFromProps(props: Props, state: State): Partial<State> | null {
    return props.resetKey === state.key ? null : { error: null, key: props.resetKey }
  }

  override componentDidCatch(error: Error, info: ErrorInfo): void {
    console.error(error, info.componentStack)
  }

  override render(): ReactNode {
    if (!this.state.error) return this.props.children
    return (
      <div className={styles.center} role="alert">
        <h1 className={styles.centerTitle}>This page broke</h1>
        <p>What you wrote is kept. Reload to go on; if it happens again, tell your operator what you did before.</p>
        <Button variant="primary" onClick={() => location.reload()}>
          Reload
        </Button>
      </div>
    )
  }
}

import { useCallback, useSyncExternalStore } from 'react'
import type { Id } from '@/shared/api'
import type { LiveRun } from '@/stream'
import { liveRuns } from './service'

/** The live view of a run for as long as the component shows it; null for a null id and before its stream exists. */
export function useLiveRun(runId: Id | null): LiveRun | null {
  const subscribe = useCallback(
    (listener: () => void) => {
      if (!runId) return () => undefined
      const release = liveRuns.watch(runId)
      const unsubscribe = liveRuns.store(runId)?.subscribe(listener)
      return () => {
        unsubscribe?.()
        release()
      }
    },
    [runId],
  )
  return useSyncExternalStore(subscribe, () => (runId ? (liveRuns.store(runId)?.get() ?? null) : null))
}

import { useEffect, useState } from 'react'
import type { Conversation } from '@/shared/api'
import { fetchConversations } from './store'

const WAIT_MS = 180

export interface Search {
  /** Null when nothing is searched. */
  results: readonly Conversation[] | null
  searching: boolean
  failed: boolean
}

/** Titles that the server finds; what the sidebar holds already is shown by the caller meanwhile. */
export function useSearch(query: string): Search {
  const q = query.trim()
  const [found, setFound] = useState<{ q: string; results: readonly Conversation[]; failed: boolean } | null>(null)
  useEffect(() => {
    if (q === '') return
    const abort = new AbortController()
    const timer = setTimeout(() => {
      fetchConversations({ q }, abort.signal).then(
        (page) => setFound({ q, results: page.results, failed: false }),
        () => !abort.signal.aborted && setFound({ q, results: [], failed: true }),
      )
    }, WAIT_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [q])
  if (q === '') return { results: null, searching: false, failed: false }
  const current = found?.q === q ? found : null
  return { results: current?.results ?? null, searching: current === null, failed: current?.failed ?? false }
}

/** What a file's tables are, their rows in pages, and questions in SQL. */
import { useCallback, useEffect, useRef, useState } from 'react'
import { describeError, request, useResource, type Id, type TableAnswer, type TableRecord } from '@/shared/api'

export const PAGE_ROWS = 100
/** Longer than any question may take on the server. */
const PATIENCE_MS = 60_000

export const useTables = (fileId: Id) =>
  useResource<{ results: TableRecord[] }>(`file-tables:${fileId}`, () => request(`/api/files/${fileId}/tables`))

export const useRows = (fileId: Id, table: number | null, offset: number) =>
  useResource<TableAnswer>(table === null ? null : `file-table:${fileId}:${table}:${offset}`, () =>
    request(`/api/files/${fileId}/tables/${table}?offset=${offset}&limit=${PAGE_ROWS}`),
  )

export interface Asked {
  answer: TableAnswer | null
  error: string | null
  busy: boolean
  ask: (sql: string) => void
  /** Back to the table itself. */
  clear: () => void
}

/** One question at a time: a newer one ends the one before. */
export function useQuestion(fileId: Id): Asked {
  const [state, setState] = useState<{ answer: TableAnswer | null; error: string | null; busy: boolean }>(IDLE)
  const running = useRef<AbortController | null>(null)
  useEffect(() => () => running.current?.abort(), [])
  const ask = useCallback(
    (sql: string) => {
      running.current?.abort()
      const mine = new AbortController()
      running.current = mine
      setState((old) => ({ ...old, error: null, busy: true }))
      request<TableAnswer>(`/api/files/${fileId}/query`, { method: 'POST', body: { sql }, signal: mine.signal, timeoutMs: PATIENCE_MS }).then(
        (answer) => !mine.signal.aborted && setState({ answer, error: null, busy: false }),
        (error: unknown) => !mine.signal.aborted && setState({ answer: null, error: describeError(error), busy: false }),
      )
    },
    [fileId],
  )
  const clear = useCallback(() => {
    running.current?.abort()
    setState(IDLE)
  }, [])
  return { ...state, ask, clear }
}

const IDLE = { answer: null, error: null, busy: false }

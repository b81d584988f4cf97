/** A file with the states of its pages, and one page with its text; read again while the file is still being read. */
import { useEffect } from 'react'
import { invalidate, request, useResource, type FileRecord, type Id, type Page, type PageRecord, type Resource } from '@/shared/api'
import { useFileRecord } from '@/features/files'

export interface FilePages {
  file: FileRecord | null
  pages: readonly PageRecord[]
  error: unknown
  loading: boolean
  reload: () => void
}

const NONE: readonly PageRecord[] = []

export function useFilePages(fileId: Id): FilePages {
  const fetched = useResource<FileRecord>(`file:${fileId}`, () => request(`/api/files/${fileId}`))
  const list = useResource<Page<PageRecord>>(`file-pages:${fileId}`, () => request(`/api/files/${fileId}/pages`))
  const file = useFileRecord(fetched.data ?? null)
  const news = file ? `${file.state} ${file.pages_ready} ${file.pages_failed.length}` : ''
  useEffect(() => {
    if (news !== '') invalidate(`file-pages:${fileId}`)
  }, [fileId, news])
  return {
    file,
    pages: list.data?.results ?? NONE,
    error: fetched.error ?? list.error,
    loading: fetched.loading || list.loading,
    reload: () => invalidate(`file`),
  }
}

/** The page's text once it is there; `state` of the list entry decides when it is worth asking again. */
export function usePageText(fileId: Id, number: number, state: PageRecord['state'] | undefined): Resource<PageRecord> {
  const key = `file-page:${fileId}:${number}:${state ?? 'unknown'}`
  return useResource<PageRecord>(state === 'pending' ? null : key, () => request(`/api/files/${fileId}/pages/${number}`))
}

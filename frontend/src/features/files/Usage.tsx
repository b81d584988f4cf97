/** How much is kept and how much may be: below the title of the files page. Nothing when it cannot be told. */
import { useEffect } from 'react'
import { request, useResource, type FileUsage } from '@/shared/api'
import { formatBytes } from './limits'
import styles from './FilesPage.module.css'

type Kept = FileUsage['mine']

/** `changes`: anything that is another value when the files are others. */
export function Usage({ changes }: { changes: unknown }) {
  const { data, reload } = useResource<FileUsage>('file-usage', () => request('/api/files/usage'))
  useEffect(reload, [changes, reload])
  if (!data) return null
  const { mine, organization } = data
  const bounded = organization.files_at_most !== null || organization.bytes_at_most !== null
  return (
    <p className={styles.usage} aria-label="Storage used">
      {usageText(mine)}
      {bounded && ` Your organization: ${usageText(organization)}`}
    </p>
  )
}

export function usageText({ files, bytes, files_at_most: mostFiles, bytes_at_most: mostBytes }: Kept): string {
  const count = mostFiles === null ? String(files) : `${files} of ${mostFiles}`
  const size = mostBytes === null ? formatBytes(bytes) : `${formatBytes(bytes)} of ${formatBytes(mostBytes)}`
  return `${count} ${files === 1 && mostFiles === null ? 'file' : 'files'}, ${size}.`
}

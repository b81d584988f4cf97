/** What may be uploaded, checked before anything is sent. The server checks again; these figures mirror its settings. */
export const MAX_BYTES = 100 * 1024 * 1024
export const MAX_PER_MESSAGE = 20
export const ENDINGS = ['.pdf', '.docx', '.txt', '.text', '.md', '.markdown', '.png', '.jpg', '.jpeg'] as const
/** For the file chooser. Types as well as endings, because phones know only types. */
export const ACCEPT = [
  ...ENDINGS,
  'application/pdf',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  'text/plain',
  'text/markdown',
  'image/png',
  'image/jpeg',
].join(',')

/** Why this file cannot be uploaded, or null. */
export function refusalOf(file: { name: string; size: number }): string | null {
  const ending = /\.[^.]+$/.exec(file.name.toLowerCase())?.[0] ?? ''
  if (!ENDINGS.some((known) => known === ending)) {
    return `${ending ? `Files ending in ${ending}` : 'Files without an ending'} cannot be read yet. PDF, Word (.docx), text, Markdown, PNG and JPEG can.`
  }
  if (file.size === 0) return 'The file is empty.'
  if (file.size > MAX_BYTES) return `The file has ${formatBytes(file.size)}; up to ${formatBytes(MAX_BYTES)} are possible.`
  return null
}

/** "214 kB", "3.4 MB": decimal units, as file managers show them. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  if (bytes < 999_500) return `${Math.round(bytes / 1000)} kB`
  const mega = bytes / 1_000_000
  return mega < 10 ? `${(Math.floor(mega * 10) / 10).toFixed(1)} MB` : `${Math.floor(mega)} MB`
}

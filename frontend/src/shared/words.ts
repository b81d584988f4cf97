/** Sentences that more than one feature says. Pure. */
import type { Citation, Survey } from '@/shared/api'

/** Instead of the passage of a file that was deleted. */
export const PASSAGE_GONE = 'This file was deleted, and the passage that the answer used with it. The answer stays as it was.'

export const sourceName = ({ file_id, file_name }: Pick<Citation, 'file_id' | 'file_name'>): string => (file_id ? file_name : 'Deleted file')

/** Where in its file a source stands. */
export function sourcePlace({ table, page, locator }: Pick<Citation, 'table' | 'page' | 'locator'>): string {
  if (table) return `table ${table}`
  const { part = '', sheet = '', slide, rows } = locator ?? {}
  const inside = sheet || rows ? [sheet && `sheet ${sheet}`, rows && rowRange(rows)] : slide ? [`slide ${slide}`] : part === 'body' ? [] : [`page ${page}`]
  return [part, ...inside].filter(Boolean).join(', ')
}

/** As the spreadsheet program shows them: without marks between thousands. */
const rowRange = ([first, last]: readonly number[]): string => (first === last ? `row ${first}` : `rows ${first}–${last}`)

/** How much of each file an answer about the whole of it rests on. */
export function surveyText({ way, words, files }: Survey): string {
  return files
    .map((file) => {
      const name = file.file_name
      if (way === 'words' && words.length > 0) {
        const where = file.found.length > 0 ? `on ${pageRange(file.found)}` : 'on none of them'
        const unread = file.found.filter((page) => !file.pages.includes(page)).length
        const rest = unread > 0 ? ` The text of ${unread} of these was too much for the model.` : ''
        return `“${words.join(' ')}” was looked for on all ${file.page_count} pages of ${name} and is ${where}.${rest}`
      }
      const covered = new Set([...file.pages, ...file.summarised]).size
      const of = covered < file.page_count ? `${covered} of ${file.page_count} pages` : `all ${file.page_count} pages`
      const summed = file.summarised.length > 0 ? `, ${file.pages.length} by their text and the rest by summaries` : ''
      return `This covers ${of} of ${name}${summed}.`
    })
    .join(' ')
}

/** [7, 8, 9, 12] -> "pages 7–9, 12" */
export function pageRange(pages: readonly number[]): string {
  const ranges: [number, number][] = []
  for (const page of pages.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (last && page <= last[1] + 1) last[1] = page
    else ranges.push([page, page])
  }
  const words = ranges.map(([from, to]) => (from === to ? String(from) : `${from}–${to}`)).join(', ')
  return `${pages.length > 1 ? 'pages' : 'page'} ${words}`
}

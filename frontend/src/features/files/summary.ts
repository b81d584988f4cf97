/** The words around a summary, and its text for the clipboard. Pure. */
import type { FileSummary } from '@/shared/api'

const MARK = /\s*\[p\. (\d+(?:, \d+)*)\]/g

/** A section's text: pieces of it, and the pages named between them. */
export function partsOf(text: string): (string | number[])[] {
  const parts: (string | number[])[] = []
  let position = 0
  for (const found of text.matchAll(MARK)) {
    if (found.index > position) parts.push(text.slice(position, found.index))
    parts.push(found[1]!.split(', ').map(Number))
    position = found.index + found[0].length
  }
  if (position < text.length) parts.push(text.slice(position))
  return parts
}

/** Where it stands, in a sentence. */
export function toldOf(summary: FileSummary): string {
  if (summary.state === 'working') {
    if (summary.waiting) return 'Waiting for a model that has time.'
    if (summary.steps === 0) return 'It begins in a moment.'
    return `${summary.steps_done} of ${summary.steps} parts are made.`
  }
  const { pages_covered: covered, page_count: count } = summary
  const pages = covered < count ? `${covered} of ${count} pages` : count === 1 ? 'the page' : `all ${count} pages`
  return `Made from ${pages}${summary.model ? ` by ${summary.model}` : ''}. Check what matters on the pages.`
}

export function asPlainText(name: string, summary: FileSummary): string {
  const sentences = summary.sentences.map((sentence) => (sentence.pages.length > 0 ? `${sentence.text} [p. ${sentence.pages.join(', ')}]` : sentence.text))
  return `${name}\n\n${sentences.join(' ')}\n\n${toldOf(summary)}\n`
}

import type { Citation } from '@/shared/api'

/** As many missing pieces are named with a citation at most; beyond them it is not known which sentences are in doubt. */
const MAX_NAMED = 5
const SENTENCE_END = /[.!?]+["'”’)*_]*(?=\s|$)|[。！？]|\n/
const MARK = /\[\d[\d\s,;–-]*\]/g

/** What an answer says with a source that the source does not contain, as a sentence; empty when all of it was found. */
export function doubtOf({ unsupported = [] }: Pick<Citation, 'unsupported'>): string {
  return unsupported.length > 0 ? `Not found in this source: ${unsupported.join(', ')}` : ''
}

/** The same for one of its marks: only what `said`, the text that the mark vouches for, holds of it. */
export function doubtOfMark({ unsupported = [] }: Pick<Citation, 'unsupported'>, said: string): string {
  if (unsupported.length >= MAX_NAMED) return doubtOf({ unsupported })
  const text = squashed(said)
  return doubtOf({ unsupported: unsupported.filter((piece) => text.includes(squashed(piece))) })
}

const squashed = (text: string): string => text.normalize('NFKC').toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, ' ')

/** What the mark at `start` to `end` vouches for: the text since the mark before it, and the rest of its own sentence. */
export function vouchedFor(text: string, start: number, end: number): string {
  let from = 0
  for (const mark of text.slice(0, start).matchAll(MARK)) {
    const after = mark.index + mark[0].length
    // Marks that follow each other vouch for the same text.
    if (wordsIn(text.slice(after, start))) from = isClosed(text.slice(from, mark.index)) ? after : sentenceEnd(text, after, start)
  }
  const before = text.slice(from, start)
  return isClosed(before) ? before : before + text.slice(end, sentenceEnd(text, end, text.length))
}

const wordsIn = (text: string): boolean => text.replaceAll(MARK, '').trim() !== ''

const isClosed = (text: string): boolean => new RegExp(`(?:${SENTENCE_END.source})\\s*$`).test(text.replaceAll(MARK, '').trimEnd())

/** Where the sentence that goes on at `from` ends, or `from` where nothing is said between that and `limit`. */
function sentenceEnd(text: string, from: number, limit: number): number {
  const rest = text.slice(from, limit)
  const found = SENTENCE_END.exec(rest)
  if (!found) return limit === text.length ? limit : from
  const after = from + found.index + found[0].length
  return limit === text.length || wordsIn(text.slice(after, limit)) ? after : from
}

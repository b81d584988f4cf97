/**
 * Where a passage stands in the text of its page. Passage and page were joined from the same pieces, but not with the same
 * line breaks, so white space is left out of the comparison; what is not found whole is looked for line by line.
 */
export type Range = [start: number, end: number]

interface Dense {
  text: string
  /** Place of each letter in the original. */
  places: number[]
}

const MIN_PART = 12

export function findPassage(page: string, passage: string): Range[] {
  const dense = condense(page)
  const whole = locate(dense, condense(passage).text)
  if (whole) return [whole]
  const parts = passage
    .split(/\n+|(?<=[.!?;:])\s+/)
    .map((part) => condense(part).text)
    .filter((part) => part.length >= MIN_PART)
  const found = parts.map((part) => locate(dense, part)).filter((range) => range !== null)
  return merge(page, found)
}

function condense(text: string): Dense {
  const places: number[] = []
  let letters = ''
  for (let index = 0; index < text.length; index += 1) {
    const letter = text[index] ?? ''
    if (/\s/.test(letter)) continue
    letters += letter
    places.push(index)
  }
  return { text: letters, places }
}

function locate(page: Dense, part: string): Range | null {
  const at = part.length > 0 ? page.text.indexOf(part) : -1
  const first = page.places[at]
  const last = page.places[at + part.length - 1]
  return first === undefined || last === undefined ? null : [first, last + 1]
}

/** Ranges in order; those with only white space between them become one. */
function merge(page: string, ranges: Range[]): Range[] {
  const merged: Range[] = []
  for (const range of ranges.toSorted((a, b) => a[0] - b[0])) {
    const last = merged.at(-1)
    if (last && page.slice(last[1], range[0]).trim() === '') last[1] = Math.max(last[1], range[1])
    else merged.push([...range])
  }
  return merged
}

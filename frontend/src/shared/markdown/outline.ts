/**
 * Levels of an answer's headings. The page gives it a heading of the first level, so its own begin at the second, whatever
 * mark the model begins with, and go one deeper at a time. A level depends on what stands before it alone, so that it does
 * not change while the answer grows.
 */
import type { Token, Tokens } from 'marked'

/** The depths of the headings that a place stands under, outermost first: '13' below a # and a ###. */
export type Outline = string

export function under(outline: Outline, token: Token): Outline {
  if (token.type !== 'heading') return outline
  const depth = String((token as Tokens.Heading).depth)
  return [...outline].filter((outer) => outer < depth).join('') + depth
}

/** The level of the innermost heading; 1, the page's, where there is none. */
export const levelOf = (outline: Outline): number => Math.min(6, 1 + outline.length)

/** For each group what stands before it. */
export function outlinesOf(groups: readonly (readonly Token[])[]): Outline[] {
  let outline: Outline = ''
  return groups.map((tokens) => {
    const before = outline
    outline = tokens.reduce(under, outline)
    return before
  })
}

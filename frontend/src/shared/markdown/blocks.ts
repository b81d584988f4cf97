/**
 * Splits a growing text into top-level blocks so that a token costs the same at the end of a long answer as at its start:
 * blocks that later text can no longer change are kept, only the rest (the tail) is lexed again.
 *
 * A block is kept once a later block has begun with a whole line. That is right for nearly all Markdown; the exceptions
 * (a link definition below its use, a fence that turns out to be text) are set right when the answer is complete, as the
 * whole text is then lexed once.
 */
import type { Token, Tokens } from 'marked'
import { heal } from './heal'
import { type Links, lex, normalizeNewlines } from './lexer'

export interface Blocks {
  /** Blocks in runs of GROUP. All but the last group keep their identity while the text grows. */
  groups: readonly (readonly Token[])[]
  /** Changes when link definitions do, as equal raw text may then mean another link. */
  linksKey: string
}

export const GROUP = 32
/** A list this long is kept in pieces while it grows, otherwise each token would lex all of it. */
const LONG_LIST = 24
/** Beyond it the text is shown as it is: no answer is that long, and a page must not freeze on a hostile one. */
export const MAX_LENGTH = 2_000_000

const isBlank = (token: Token): boolean => token.type === 'space' || token.type === 'def'

export class BlockStream {
  private stableText = ''
  /** Complete groups, then the blocks of the group that is being filled. */
  private full: (readonly Token[])[] = []
  private partial: Token[] = []
  private links: Links = {}
  private whole: { text: string; blocks: Blocks } | null = null

  /** Blocks of `text`. Any text may follow any other; a continuation of the previous one is cheap. */
  update(text: string, streaming: boolean): Blocks {
    if (text.length > MAX_LENGTH) return { groups: [[{ type: 'plain', raw: text, text }]], linksKey: '' }
    return streaming ? this.grow(text) : this.complete(normalizeNewlines(text))
  }

  private grow(text: string): Blocks {
    const tail = this.tailOf(text)
    const { tokens, links } = lex(heal(tail), this.links)
    const count = countStable(tokens, tail)
    for (const token of tokens.slice(0, count)) this.keep(token)
    const open = this.splitLongList(tokens.slice(count))
    this.links = links
    return {
      groups: [...this.full, ...inGroups([...this.partial, ...open.filter((token) => !isBlank(token))])],
      linksKey: keyOf(links),
    }
  }

  /** What follows the kept blocks; everything when the text is another one. */
  private tailOf(text: string): string {
    // Comparing two flat strings is a memcmp; startsWith goes letter by letter.
    const rest = text.slice(0, this.stableText.length) === this.stableText ? text.slice(this.stableText.length) : null
    if (rest !== null && !rest.includes('\r')) return rest
    const source = normalizeNewlines(text)
    if (!source.startsWith(this.stableText)) this.reset()
    return source.slice(this.stableText.length)
  }

  private complete(source: string): Blocks {
    if (this.whole?.text !== source) {
      const { tokens, links } = lex(source)
      const blocks = { groups: inGroups(tokens.filter((token) => !isBlank(token))), linksKey: keyOf(links) }
      this.whole = { text: source, blocks }
    }
    return this.whole.blocks
  }

  private keep(token: Token): void {
    this.stableText += token.raw
    if (isBlank(token)) return
    this.partial.push(token)
    if (this.partial.length === GROUP) {
      this.full.push(this.partial)
      this.partial = []
    }
  }

  /** Keep the items of a long last list but the last two. It looks the same: lists that touch have no space between them. */
  private splitLongList(open: Token[]): Token[] {
    const list = open[0] as Tokens.List | undefined
    if (list?.type !== 'list' || list.items.length < LONG_LIST || list.loose) return open
    const head = list.items.slice(0, -2)
    const raw = head.map((item) => item.raw).join('')
    const rest = list.items.slice(-2)
    if (!list.raw.startsWith(raw)) return open
    this.keep({ ...list, raw, items: head })
    const start = list.ordered && typeof list.start === 'number' ? list.start + head.length : list.start
    return [{ ...list, raw: list.raw.slice(raw.length), items: rest, start }, ...open.slice(1)]
  }

  private reset(): void {
    this.stableText = ''
    this.full = []
    this.partial = []
    this.links = {}
  }
}

/**
 * How many leading tokens no later text can change: those before the last token that begins with a whole line.
 * `tail` is the text before healing, which touches only its end.
 */
function countStable(tokens: readonly Token[], tail: string): number {
  const lastNewline = tail.lastIndexOf('\n')
  let start = 0
  let count = 0
  for (const [index, token] of tokens.entries()) {
    if (start > lastNewline) break
    // A definition may still get a title from the next line, so it is settled by a blank line only.
    if (token.type !== 'space' && tokens[index - 1]?.type !== 'def') count = index
    start += token.raw.length
  }
  const raw = tokens.slice(0, count).map((token) => token.raw).join('')
  return tail.startsWith(raw) ? count : 0
}

function inGroups(tokens: readonly Token[]): (readonly Token[])[] {
  const groups: (readonly Token[])[] = []
  for (let at = 0; at < tokens.length; at += GROUP) groups.push(tokens.slice(at, at + GROUP))
  return groups
}

function keyOf(links: Links): string {
  const keys = Object.keys(links)
  return keys.length === 0 ? '' : JSON.stringify(links)
}

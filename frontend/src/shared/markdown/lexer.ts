/**
 * Markdown text to tokens. Uses marked's lexer only (CommonMark + GFM, about 16 kB compressed, no dependencies, released
 * monthly); micromark with its GFM parts is three times as large and cannot start in the middle of a text, and a parser
 * that makes HTML strings would need a sanitizer. Rendering is ours, so a token this file does not know cannot reach the page.
 *
 * Differences from plain GFM: HTML is text (except <br>), $ and \( \) make math, [1] makes a citation token, and
 * "[1]: words" is no link definition unless a web address follows.
 */
import { Lexer, Marked, type Token, type Tokens } from 'marked'

export interface MathToken {
  type: 'math'
  raw: string
  text: string
  display: boolean
  /** Its end has not arrived yet; the text may be half a command. */
  pending: boolean
}

export interface CiteToken {
  type: 'cite'
  raw: string
  numbers: number[]
}

export type Links = Record<string, { href: string; title?: string | null }>

/** heal.ts puts it before an end mark that it had to add to math. */
export const PENDING = '\uE000'

// The lengths are bounded so that many unclosed openers stay linear.
const BLOCK_DOLLARS = /^ {0,3}\$\$(?!\$)((?:\\[\s\S]|(?!\n[ \t]*\n)[^$\\]){1,20000}?)\$\$[ \t]*(?:\n+|$)/
const BLOCK_BRACKETS = /^ {0,3}\\\[((?:(?!\n[ \t]*\n)[\s\S]){1,20000}?)\\\][ \t]*(?:\n+|$)/
const BLOCK_START = /\n {0,3}(?:\$\$|\\\[)/
const INLINE_DOUBLE = /^\$\$(?!\$)((?:\\[\s\S]|[^$\\]){1,4000}?)\$\$(?!\$)/
const INLINE_SINGLE = /^\$(?![\s$])((?:\\[^\n]|[^$\\\n]){1,2000}?)\$(?![\p{L}\p{N}$])/u
const INLINE_PARENS = /^\\\(([\s\S]{1,4000}?)\\\)/
const INLINE_BRACKETS = /^\\\[([\s\S]{1,4000}?)\\\]/
/** "$5 and a cup of tea for $": prices in prose, although the dollars pair up. */
const PRICE = /^\d[\d.,]*(?:\s?[-–]\s?|\s+(?![\\^_+=<>*/])\p{L}{2,})/u
const CITE = /^\[(\d{1,3}(?:\s?[,;]\s?\d{1,3}){0,9})\](?!\()/
const NUMERIC_DEFINITION = /^ {0,3}\[\d{1,3}\]:(?!\s*<?https?:\/\/)/i
const LINE_BREAK_TAG = /^<br\s*\/?>/i
const MATH_IN_TEXT = /(?<![\p{L}\p{N}\\$])\$(?![\s$])(?:\\[^\n]|[^$\\\n]){1,2000}?\$(?![\p{L}\p{N}$])|\\\([\s\S]{1,4000}?\\\)/gu

function mathToken(raw: string, source: string, display: boolean): MathToken {
  const pending = source.endsWith(PENDING)
  return { type: 'math', raw, text: (pending ? source.slice(0, -1) : source).trim(), display, pending }
}

/** `before` is what stands in front: "US$5" and "a$b" open no math. */
export function matchDollarMath(source: string, before: string): string | null {
  if (/[\p{L}\p{N}\\$]$/u.test(before)) return null
  const match = INLINE_SINGLE.exec(source)
  const body = match?.[1]
  if (!match || !body || /\s$/.test(body) || PRICE.test(body)) return null
  return match[0]
}

function inlineMath(source: string, before: string): MathToken | undefined {
  if (source.startsWith('\\')) {
    const parens = INLINE_PARENS.exec(source)
    if (parens) return mathToken(parens[0], parens[1] ?? '', false)
    const brackets = INLINE_BRACKETS.exec(source)
    return brackets ? mathToken(brackets[0], brackets[1] ?? '', true) : undefined
  }
  const double = INLINE_DOUBLE.exec(source)
  if (double?.[1]?.trim()) return mathToken(double[0], double[1], true)
  const single = matchDollarMath(source, before)
  return single ? mathToken(single, single.slice(1, -1), false) : undefined
}

const marked = new Marked({
  gfm: true,
  tokenizer: {
    html: () => undefined,
    tag(source) {
      const tag = LINE_BREAK_TAG.exec(source)
      // The declared result is an HTML token; the lexer passes on any token.
      return tag ? ({ type: 'br', raw: tag[0] } as unknown as Tokens.Tag) : undefined
    },
    def: (source) => (NUMERIC_DEFINITION.test(source) ? undefined : false),
  },
  hooks: {
    // Asterisks and underscores inside math must not close emphasis around it.
    emStrongMask: (source) =>
      source.includes('$') || source.includes('\\(') ? source.replace(MATH_IN_TEXT, (math) => 'a'.repeat(math.length)) : source,
  },
  extensions: [
    {
      name: 'math',
      level: 'block',
      start(source) {
        // Only this paragraph matters; searching the whole rest for each paragraph would be quadratic.
        const end = source.indexOf('\n\n')
        const match = BLOCK_START.exec(end < 0 ? source : source.slice(0, end))
        return match ? match.index + 1 : undefined
      },
      tokenizer(source) {
        const match = BLOCK_DOLLARS.exec(source) ?? BLOCK_BRACKETS.exec(source)
        return match?.[1]?.trim() ? mathToken(match[0], match[1], true) : undefined
      },
    },
    {
      name: 'inlineMath',
      level: 'inline',
      start(source) {
        const match = /\$|\\[([]/.exec(source)
        return match?.index
      },
      tokenizer(source, tokens) {
        return source.startsWith('$') || source.startsWith('\\') ? inlineMath(source, tokens.at(-1)?.raw ?? '') : undefined
      },
    },
    {
      name: 'cite',
      level: 'inline',
      start(source) {
        const match = /\[\d/.exec(source)
        return match?.index
      },
      tokenizer(source): CiteToken | undefined {
        const match = CITE.exec(source)
        if (!match?.[1] || match[1] in this.lexer.tokens.links) return undefined
        return { type: 'cite', raw: match[0], numbers: match[1].split(/[,;]/).map(Number) }
      },
    },
  ],
})

export interface Lexed {
  tokens: Token[]
  links: Links
}

/**
 * `known` are link definitions that stand earlier in the text. Never throws: a text that is nested too deeply for the
 * lexer becomes one plain token. The raw texts of the tokens add up to `source` but for newlines at its end; `source` must
 * be without carriage returns.
 */
export function lex(source: string, known: Links = {}): Lexed {
  const lexer = new Lexer(marked.defaults)
  Object.assign(lexer.tokens.links, known)
  try {
    const tokens = lexer.lex(source)
    return { tokens, links: tokens.links as Links }
  } catch {
    return { tokens: [{ type: 'plain', raw: source, text: source }], links: { ...known } }
  }
}

export function normalizeNewlines(text: string): string {
  return text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text
}

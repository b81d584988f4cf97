/**
 * Makes the end of a half-written Markdown text read like the finished one, so that nothing flickers while it streams:
 * open emphasis, code and math are closed, a table's delimiter row is supplied, marks that mean nothing yet are held back.
 * Works on the last line or paragraph only; everything above is finished.
 */
import { PENDING, matchDollarMath } from './lexer'

const FENCE = /^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})(.*)$/
/** A line that is only marks: of a list item, heading, rule, fence, quote or setext underline still being written. */
const ONLY_MARKS = /^[ \t>]*(?:[-*+]|\d{1,3}[.)]?|#{1,6}|`{1,2}|~{1,2}|-+|=+|\*+|_+|\|)?[ \t]*(?:\[[ xX]?\]?)?[ \t]*$/
const BLOCK_MARK = /^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+|#{1,6}[ \t]+)?(?:\[[ xX]\][ \t]+)?/
const TABLE_LINE = /^ {0,3}\|/

export function heal(tail: string): string {
  const fence = openFence(tail)
  if (fence) return healFence(tail, fence)
  const lineStart = tail.lastIndexOf('\n') + 1
  const line = tail.slice(lineStart)
  if (!ONLY_MARKS.test(line)) return healTable(healText(tail))
  const above = tail.slice(0, lineStart)
  // After a blank line the paragraph above is finished; else it may go on and its emphasis may still be open.
  return above.trim() === '' || /\n[ \t]*\n$/.test(above) ? above : healTable(healText(above.trimEnd()))
}

interface Fence {
  mark: string
  /** Where the line of the opening fence begins and where its info string does. */
  line: number
  info: number
}

/** The code fence that is open at the end of the text, if any. */
function openFence(text: string): Fence | null {
  if (!text.includes('```') && !text.includes('~~~')) return null
  let open: Fence | null = null
  let at = 0
  for (const line of text.split('\n')) {
    const match = FENCE.exec(line)
    const mark = match?.[1] ?? ''
    const rest = match?.[2] ?? ''
    if (open) {
      if (mark.startsWith(open.mark) && rest.trim() === '') open = null
    } else if (mark && !(mark.startsWith('`') && rest.includes('`'))) {
      open = { mark, line: at, info: at + line.length - rest.length }
    }
    at += line.length + 1
  }
  return open
}

function healFence(text: string, fence: Fence): string {
  const lineStart = text.lastIndexOf('\n') + 1
  // The language arrives letter by letter: no label before its line is whole.
  if (lineStart <= fence.line) return text.slice(0, fence.info)
  const lastLine = text.slice(lineStart).trim()
  return lastLine !== '' && fence.mark.startsWith(lastLine) ? text.slice(0, lineStart) : text
}

/** A table is known by its second row; until that has come, give the header row one. */
function healTable(text: string): string {
  const lines = text.split('\n')
  while (lines.length > 0 && lines.at(-1)?.trim() === '') lines.pop()
  let first = lines.length
  while (first > 0 && lines.length - first < 3 && TABLE_LINE.test(lines[first - 1] ?? '')) first -= 1
  const rows = lines.slice(first)
  if (rows.length === 0 || rows.length > 2) return text
  const header = (rows[0] ?? '').trimEnd()
  if (header.trim() === '|') return lines.slice(0, first).join('\n')
  const delimiter = rows[1]
  if (delimiter !== undefined && !/^[\s|:-]*$/.test(delimiter)) return text
  const whole = /[^\\]\|$/.test(header) ? header : `${header} |`
  const columns = (whole.match(/(?<!\\)\|/g)?.length ?? 2) - 1
  return [...lines.slice(0, first), whole, `|${' - |'.repeat(Math.max(1, columns))}`].join('\n')
}

/** Where the inline text begins that the end of the text belongs to. */
function inlineStart(text: string): number {
  const paragraph = text.lastIndexOf('\n\n') + 1
  const lines = text.slice(paragraph).split('\n')
  let at = text.length
  for (const line of lines.toReversed()) {
    at -= line.length
    if (TABLE_LINE.test(line)) return at + Math.max(0, lastCell(line))
    const mark = BLOCK_MARK.exec(line)?.[0] ?? ''
    if (mark.trim() !== '') return at + mark.length
    at -= 1
  }
  return paragraph
}

function lastCell(line: string): number {
  const cells = [...line.matchAll(/(?<!\\)\|/g)]
  return (cells.at(-1)?.index ?? -1) + 1
}

interface Open {
  mark: string
  at: number
}

/** Close what is open in the last paragraph, line or cell. */
function healText(text: string): string {
  const start = inlineStart(text)
  return text.slice(0, start) + new InlineHealer(text.slice(start)).run()
}

/** One pass over inline text that knows code spans, math, links and emphasis just well enough to end them. */
class InlineHealer {
  private at = 0
  private readonly stack: Open[] = []
  private readonly brackets: number[] = []
  private result: string | null = null

  constructor(private text: string) {}

  run(): string {
    while (this.at < this.text.length && this.result === null) this.step()
    return this.result ?? this.close(this.text)
  }

  private step(): void {
    const char = this.text[this.at]
    if (char === '\\') this.escape()
    else if (char === '`') this.code()
    else if (char === '$') this.dollar()
    else if (char === '[') this.brackets.push(this.at++)
    else if (char === ']') this.bracketEnd()
    else if (char === '*' || char === '_' || char === '~') this.emphasis(char)
    else this.at += 1
  }

  /** Append the end marks of open emphasis, innermost first, after dropping what has no meaning yet. */
  private close(text: string): string {
    let body = holdBack(text, this.brackets)
    const open = this.stack.filter((mark) => mark.at < body.length)
    const last = open.at(-1)
    // Marks with nothing behind them yet.
    if (last && body.slice(last.at + last.mark.length).trim() === '') {
      body = body.slice(0, last.at)
      open.pop()
    }
    const closed = open.length === 0 ? body : body.trimEnd() + open.toReversed().map((mark) => mark.mark).join('')
    const bracket = this.brackets.findLast((at) => at < body.length)
    return bracket !== undefined && this.looksLikeLink(bracket) ? closed.slice(0, bracket) + closed.slice(bracket + 1) : closed
  }

  /** "[the words of a li": most brackets that begin a word become links, whose brackets are never shown. */
  private looksLikeLink(at: number): boolean {
    return /^[\p{L}*_`]/u.test(this.text.slice(at + 1)) && !/[\p{L}\p{N}\])]/u.test(this.text[at - 1] ?? ' ')
  }

  private escape(): void {
    const next = this.text[this.at + 1]
    if (next === undefined) {
      this.result = this.close(this.text.slice(0, this.at))
    } else if (next === '(' || next === '[') {
      const end = this.text.indexOf(next === '(' ? '\\)' : '\\]', this.at + 2)
      if (end >= 0) this.at = end + 2
      else this.pendingMath(2, next === '(' ? '\\)' : '\\]')
    } else {
      this.at += 2
    }
  }

  private pendingMath(opener: number, closer: string): void {
    const before = this.text.slice(0, this.at)
    const body = this.text.slice(this.at + opener)
    // Half of the closing mark may be here already.
    const clean = body.replace(closer.startsWith('\\') ? /\\$/ : /\$$/, '')
    if (clean.trim() === '') this.result = this.close(before)
    else this.result = this.close(`${before}${this.text.slice(this.at, this.at + opener)}${clean}${PENDING}${closer}`)
  }

  private code(): void {
    const run = /^`+/.exec(this.text.slice(this.at))?.[0] ?? '`'
    const body = this.text.slice(this.at + run.length)
    const end = new RegExp(`(?<!\`)${run}(?!\`)`).exec(body)
    if (end) {
      this.at += run.length + end.index + run.length
      return
    }
    const content = body.replace(/`+$/, '')
    if (content.trim() === '') this.result = this.close(this.text.slice(0, this.at))
    else this.result = this.close(`${this.text.slice(0, this.at)}${run}${content}${run}`)
  }

  private dollar(): void {
    const rest = this.text.slice(this.at)
    if (rest.startsWith('$$')) {
      const end = rest.indexOf('$$', 2)
      if (end >= 0) this.at += end + 2
      else this.pendingMath(2, '$$')
      return
    }
    const math = matchDollarMath(rest, this.text.slice(0, this.at))
    if (math) this.at += math.length
    else if (rest === '$') this.result = this.close(this.text.slice(0, this.at))
    else if (/^\$[^\s\d$][^$\n]*$/.test(rest) && /[\\^_={}]/.test(rest)) this.pendingMath(1, '$')
    else this.at += 1
  }

  private bracketEnd(): void {
    const open = this.brackets.pop()
    const rest = this.text.slice(this.at + 1)
    if (open === undefined || !rest.startsWith('(')) {
      this.at += 1
      return
    }
    const end = rest.indexOf(')')
    if (end >= 0) {
      this.at += end + 2
      return
    }
    // The address is still coming: show the words of the link, and nothing for an image.
    const image = this.text[open - 1] === '!'
    const words = image ? '' : this.text.slice(open + 1, this.at)
    this.result = this.close(this.text.slice(0, image ? open - 1 : open) + words)
  }

  private emphasis(char: string): void {
    const run = new RegExp(`^\\${char}+`).exec(this.text.slice(this.at))?.[0] ?? char
    const before = this.text[this.at - 1] ?? ' '
    const after = this.text[this.at + run.length] ?? ' '
    const position = this.at
    this.at += run.length
    if (char === '~' && run.length !== 2) return
    const last = this.stack.at(-1)
    // snake_case, 2*3: inside a word these marks are nearly always meant as they are.
    const inWord = /[\p{L}\p{N}]/u.test(before) && /[\p{L}\p{N}]/u.test(after)
    if (inWord && (char === '_' || !last?.mark.startsWith(char))) return
    if (!/\s/.test(before) && last?.mark.startsWith(char)) this.endEmphasis(run.length)
    else if (!/\s/.test(after) || this.at === this.text.length) this.stack.push({ mark: run.slice(0, 3), at: position })
  }

  private endEmphasis(length: number): void {
    let left = length
    for (let last = this.stack.at(-1); last && left > 0; last = this.stack.at(-1)) {
      if (last.mark.length > left) {
        // "**bold*": the second asterisk of the end is still to come, and a single one is not shown.
        last.mark = this.at === this.text.length ? last.mark : last.mark.slice(left)
        if (this.at === this.text.length) this.text = this.text.slice(0, -left)
        return
      }
      left -= last.mark.length
      this.stack.pop()
    }
  }
}

/** Cut an unfinished citation, image, line-break tag or character reference from the end. */
function holdBack(text: string, brackets: readonly number[]): string {
  const open = brackets.at(-1)
  if (open !== undefined) {
    const inside = text.slice(open + 1)
    if (text[open - 1] === '!') return text.slice(0, open - 1)
    if (/^[\d\s,;]*$/.test(inside)) return text.slice(0, open)
  }
  return text.replace(/(?:<\/?(?:b(?:r\s*\/?)?)?|&[a-z#][a-z0-9]{0,6}|&#?)$/i, '')
}

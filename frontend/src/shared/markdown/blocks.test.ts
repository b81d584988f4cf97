import type { Token, Tokens } from 'marked'
import { describe, expect, test, vi } from 'vitest'
import { BlockStream, type Blocks } from './blocks'
import { heal } from './heal'
import { lex, normalizeNewlines } from './lexer'
import { ANSWER, NASTY, STEADY, jumble, random } from './samples'

vi.mock('./lexer', async (load) => {
  const real = await load<typeof import('./lexer')>()
  return { ...real, lex: vi.fn(real.lex) }
})

const flat = (blocks: Blocks): Token[] => blocks.groups.flat()
const inner = (token: Token | undefined): Token[] => (token as Tokens.Generic | undefined)?.tokens ?? []
const kinds = (text: string): string[] => inner(lex(text).tokens[0]).map((token) => token.type)
const shape = (token: Token): unknown => JSON.parse(JSON.stringify(token))

describe('lexer', () => {
  test.each([ANSWER, ...NASTY, ...Array.from({ length: 60 }, (_, seed) => jumble(seed, 60))])('raw texts add up %#', (text) => {
    const source = normalizeNewlines(text)
    const whole = lex(source).tokens.map((token) => token.raw).join('')
    expect(whole.trimEnd()).toBe(source.trimEnd())
  })

  test.each([
    ['costs $5 and $10 a day', 0],
    ['from $5-$10', 0],
    ['US$5, then 6$ more', 0],
    ['$5 per user for $', 0],
    ['$ x $', 0],
    ['\\$x\\$', 0],
    ['`$x$`', 0],
    ['the $x$ axis, $y_1$.', 2],
    ['$2x + 3$ and $10^5$', 2],
    ['\\(a\\) and \\[b\\]', 2],
    ['so $$a+b$$ holds', 1],
    ['$a*b$ and *this $c*d$ too*', 1],
    ['text:\n$$\nx\n$$\nmore', 1],
  ])('math in %j', (text, expected) => {
    const found = lex(text).tokens.flatMap((token) => (token.type === 'math' ? [token] : inner(token).filter((child) => child.type === 'math')))
    expect(found.length).toBe(expected)
  })

  test('emphasis may enclose math with an asterisk', () => {
    expect(kinds('*note $c*d$ end*')).toEqual(['em'])
  })

  test('citations', () => {
    expect(kinds('a [1] b [2, 3].')).toEqual(['text', 'cite', 'text', 'cite', 'text'])
    expect(kinds('[1](https://example.org)')).toEqual(['link'])
    expect(kinds('`[1]` a[i] [12345]')).toEqual(['codespan', 'text'])
    expect(kinds('see [1]: as said')).toEqual(['text', 'cite', 'text'])
    expect(lex('[1]: report.pdf').tokens[0]?.type).toBe('paragraph')
    expect(lex('[1]: https://example.org').tokens[0]?.type).toBe('def')
  })
})

describe('healing', () => {
  test.each([
    ['a **bol', 'a **bol**'],
    ['a **bold*', 'a **bold**'],
    ['a *it', 'a *it*'],
    ['a ***both', 'a ***both***'],
    ['**a *b* c', '**a *b* c**'],
    ['a **', 'a '],
    ['a ~~x', 'a ~~x~~'],
    ['a `cod', 'a `cod`'],
    ['a ``co`d', 'a ``co`d``'],
    ['a `', 'a '],
    ['a [lin', 'a lin'],
    ['a [link](htt', 'a link'],
    ['a [1', 'a '],
    ['a [1, ', 'a '],
    ['a ![alt](htt', 'a '],
    ['a $x^', 'a $x^\uE000$'],
    ['a \\(x', 'a \\(x\uE000\\)'],
    ['a $', 'a '],
    ['costs $5 and', 'costs $5 and'],
    ['snake_case', 'snake_case'],
    ['2*3', '2*3'],
    ['3 * 4', '3 * 4'],
    ['a <br', 'a '],
    ['a &am', 'a '],
    ['a\\', 'a'],
    ['x\n\n-', 'x\n\n'],
    ['x\n\n##', 'x\n\n'],
    ['x\n\n- [', 'x\n\n'],
    ['```py', '```'],
    ['```py\nx\n``', '```py\nx\n'],
    ['```py\nx **a', '```py\nx **a'],
    ['| a | b', '| a | b |\n| - | - |'],
    ['| a | b |\n|--', '| a | b |\n| - | - |'],
    ['| a | b |\n|---|---|\n| **x', '| a | b |\n|---|---|\n| **x**'],
    ['done **once** and', 'done **once** and'],
  ])('%j', (text, expected) => expect(heal(text)).toBe(expected))
})

describe('a growing text', () => {
  const texts = [ANSWER, ...STEADY, ...NASTY.filter((text) => text.length < 800), ...Array.from({ length: 40 }, (_, seed) => jumble(seed, 40))]

  test.each(texts)('every prefix can be shown, and the end equals a fresh lexing %#', (text) => {
    const stream = new BlockStream()
    for (let end = 0; end <= text.length; end += 1) stream.update(text.slice(0, end), true)
    const blocks = stream.update(text, false)
    expect(flat(blocks).map(shape)).toEqual(flat(new BlockStream().update(text, false)).map(shape))
  })

  test.each(STEADY)('a block once shown keeps its kind %#', (text) => {
    const stream = new BlockStream()
    const final = flat(new BlockStream().update(text, false)).map((token) => token.type)
    for (let end = 0; end <= text.length; end += 1) {
      const now = flat(stream.update(text.slice(0, end), true)).map((token) => token.type)
      expect({ end, kinds: now }).toEqual({ end, kinds: final.slice(0, now.length) })
    }
  })

  test('blocks above the open one keep their identity', () => {
    const text = Array.from({ length: 200 }, (_, index) => `Paragraph **${index}**.\n\n`).join('')
    const stream = new BlockStream()
    let before = stream.update(text.slice(0, 3000), true)
    for (let end = 3001; end < text.length; end += 7) {
      const after = stream.update(text.slice(0, end), true)
      expect(after.groups.length).toBeGreaterThanOrEqual(before.groups.length)
      for (const [index, group] of before.groups.slice(0, -2).entries()) expect(after.groups[index]).toBe(group)
      before = after
    }
  })

  test('a text that is replaced (a snapshot) starts again', () => {
    const stream = new BlockStream()
    stream.update('# One\n\ntwo\n\nthree\n\nfour', true)
    expect(flat(stream.update('> other\n\ntext', true)).map((token) => token.type)).toEqual(['blockquote', 'paragraph'])
  })

  test('random steps give the same blocks as single letters', () => {
    const next = random(7)
    const stream = new BlockStream()
    for (let end = 0; end < ANSWER.length; end += 1 + Math.floor(next() * 40)) stream.update(ANSWER.slice(0, end), true)
    const letters = new BlockStream()
    for (let end = 0; end <= ANSWER.length; end += 1) letters.update(ANSWER.slice(0, end), true)
    expect(flat(stream.update(ANSWER, true)).map(shape)).toEqual(flat(letters.update(ANSWER, true)).map(shape))
  })

  test('a long list keeps its numbers while it is kept in pieces', () => {
    const text = Array.from({ length: 100 }, (_, index) => `${index + 1}. item ${index}\n`).join('')
    const stream = new BlockStream()
    for (let end = 0; end <= text.length; end += 5) {
      let expected = 1
      for (const token of flat(stream.update(text.slice(0, end), true))) {
        if (token.type !== 'list') continue
        expect(token['start']).toBe(expected)
        expected += (token['items'] as unknown[]).length
      }
    }
  })

  test('the work for one more token does not grow with the text', () => {
    let text = Array.from({ length: 5000 }, (_, index) => `Some **words** of paragraph ${index} and \`code\`.\n\n`).join('')
    const stream = new BlockStream()
    stream.update(text, true)
    vi.mocked(lex).mockClear()
    for (let token = 0; token < 300; token += 1) {
      text += 'word '
      stream.update(text, true)
    }
    const lexed = vi.mocked(lex).mock.calls.map(([part]) => part.length)
    // The paragraph that grows, and none of the 5,000 before it.
    expect(lexed).toHaveLength(300)
    expect(Math.max(...lexed)).toBeLessThan(2_000)
  })
})

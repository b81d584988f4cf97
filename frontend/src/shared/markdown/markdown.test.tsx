import { act, fireEvent, render, screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, test, vi } from 'vitest'
import type { Citation } from '@/shared/api'
import { Markdown } from '.'
import { highlight } from './highlighter'
import { languageOf } from './languages'
import { isOwnImage, safeHref } from './safe-url'
import { ANSWER, NASTY, jumble } from './samples'

const citation = (n: number): Citation => ({
  n,
  passage_id: `p${n}`,
  file_id: 'f',
  file_name: 'report.pdf',
  page: n + 2,
  boxes: [],
  text: `Passage ${n}`,
  source: 'digital',
  heading: 'Growth',
})

const ALLOWED = new Set(
  'A,BLOCKQUOTE,BR,BUTTON,CODE,DEL,DIV,EM,FIGCAPTION,FIGURE,H2,H3,H4,H5,H6,HR,INPUT,LI,OL,P,PATH,PRE,SPAN,STRONG,SVG,TABLE,TBODY,TD,TH,THEAD,TR,UL,CIRCLE,RECT'.split(','),
)

/** Everything of `root` that a checked answer may never contain. */
function offences(root: Element): string[] {
  const found: string[] = []
  for (const element of root.querySelectorAll('*')) {
    const name = element.tagName.toUpperCase()
    if (element.closest('[data-math]')) continue
    if (!ALLOWED.has(name)) found.push(`<${name}>`)
    for (const attribute of element.attributes) {
      if (/^on/i.test(attribute.name) || /^(?:src|srcdoc|style|xlink:href)$/i.test(attribute.name)) found.push(`${name} ${attribute.name}=${attribute.value}`)
    }
    const href = element.getAttribute('href')
    if (href !== null && !/^(?:https?:|mailto:)/i.test(href)) found.push(`href ${href}`)
    if (href !== null && element.getAttribute('rel') !== 'noopener noreferrer nofollow') found.push('rel')
  }
  return found
}

describe('hostile text', () => {
  test.each(NASTY)('is inert: %j', (text) => {
    const { container } = render(<Markdown text={text} />)
    expect(offences(container)).toEqual([])
  })

  test.each(NASTY.filter((text) => text.length < 200))('is inert at every prefix: %j', (text) => {
    const { container, rerender } = render(<Markdown text="" streaming />)
    for (let end = 1; end <= text.length; end += 1) {
      rerender(<Markdown text={text.slice(0, end)} streaming />)
      expect(offences(container)).toEqual([])
    }
  })

  test('HTML is shown as the text that it is', () => {
    const { container } = render(<Markdown text={'<b>x</b>\n\n<script>alert(1)</script>'} />)
    expect(container.textContent).toBe('<b>x</b><script>alert(1)</script>')
  })

  test('an image of another host becomes a link that says where it leads', () => {
    const { container } = render(<Markdown text="![chart](https://evil.example/a.png?q=secret)" />)
    expect(container.querySelector('img')).toBeNull()
    expect(container.querySelector('a')?.textContent).toBe('chart (evil.example)')
  })

  test.each([
    ['https://example.org/a', 'https://example.org/a'],
    ['mailto:a@b.co', 'mailto:a@b.co'],
    ['javascript:alert(1)', null],
    [' javascript:alert(1)', null],
    ['https://good.example@evil.example/', null],
    ['/relative', null],
    ['#anchor', null],
    ['ftp://example.org', null],
  ])('address %j', (href, expected) => expect(safeHref(href)).toBe(expected))

  test('only own page images are loaded', () => {
    const id = '01890a5d-ac96-774b-bcce-b302099a8057'
    expect(isOwnImage(`/api/files/${id}/pages/3/image?width=600`)).toBe(true)
    expect(isOwnImage(`/api/files/${id}/pages/3/image?next=https://evil.example`)).toBe(false)
    expect(isOwnImage(`//evil.example/api/files/${id}/content`)).toBe(false)
  })
})

describe('any text', () => {
  test.each(Array.from({ length: 25 }, (_, seed) => jumble(seed + 500, 50)))('renders at every prefix %#', (text) => {
    for (let end = 0; end <= text.length; end += 3) {
      expect(() => renderToStaticMarkup(<Markdown text={text.slice(0, end)} streaming />)).not.toThrow()
      expect(() => renderToStaticMarkup(<Markdown text={text.slice(0, end)} />)).not.toThrow()
    }
  })

  test('finished blocks keep their elements while the text grows and when it ends', () => {
    const { container, rerender } = render(<Markdown text="" streaming />)
    const root = container.firstElementChild
    if (!root) throw new Error('nothing rendered')
    let before: Element[] = []
    for (let end = 0; end <= ANSWER.length; end += 4) {
      rerender(<Markdown text={ANSWER.slice(0, end)} streaming />)
      const now = [...root.children]
      for (const [index, element] of before.slice(0, -1).entries()) expect(now[index]).toBe(element)
      before = now
    }
    rerender(<Markdown text={ANSWER} />)
    expect([...root.children].slice(0, before.length - 1)).toEqual(before.slice(0, -1))
  })

  test('the sample answer has its parts', () => {
    const { container } = render(<Markdown text={ANSWER} />)
    const count = (selector: string) => container.querySelectorAll(selector).length
    expect([count('h2'), count('h3'), count('ol > li'), count('input:checked'), count('input'), count('blockquote'), count('td'), count('hr')]).toEqual(
      [1, 1, 3, 1, 2, 1, 6, 1],
    )
    expect(count('[data-math]')).toBe(4)
    expect(container.querySelector('a')?.getAttribute('href')).toBe('https://example.org/a_(b)?x=1&y=2')
    expect(container.textContent).toContain('from $5 to $8 a share')
    expect(container.textContent).toContain('2*3 and snake_case_name')
  })
})

describe('headings', () => {
  const levels = (text: string, streaming = false) => {
    const { container, unmount } = render(<Markdown text={text} streaming={streaming} />)
    const found = [...container.querySelectorAll('h1,h2,h3,h4,h5,h6')].map((heading) => `${heading.tagName}/${heading.getAttribute('data-depth')}`)
    unmount()
    return found.join(' ')
  }

  test.each([
    ['# One\n\n## Two\n\n### Three', 'H2/1 H3/2 H4/3'],
    ['## Two\n\ntext\n\n### Three\n\n## Two', 'H2/2 H3/3 H2/2'],
    ['### Three\n\n# One\n\n### Three\n\n## Two', 'H2/3 H2/1 H3/3 H3/2'],
    ['# 1\n\n## 2\n\n### 3\n\n#### 4\n\n##### 5\n\n###### 6', 'H2/1 H3/2 H4/3 H5/4 H6/5 H6/6'],
    ['> ## Quoted\n\n## Two\n\n> # Quoted\n\n- ### Listed', 'H2/2 H2/2 H3/1 H3/3'],
  ])('%j stands below the heading of the page, one level at a time', (text, wanted) => {
    expect(levels(text)).toBe(wanted)
    expect(levels(`${text}\n\nend`, true)).toBe(wanted)
  })

  test('levels go on over the groups that a long answer is kept in', () => {
    const paragraphs = 'text\n\n'.repeat(40)
    expect(levels(`# One\n\n${paragraphs}## Two\n\n${paragraphs}### Three\n\n${paragraphs}## Two`)).toBe('H2/1 H3/2 H4/3 H3/2')
  })
})

describe('citations', () => {
  test('only known numbers become chips, also when they come later', () => {
    const text = 'Growth [1], margin [7] and both [1, 2].'
    const { rerender, container } = render(<Markdown text={text} />)
    expect(screen.queryAllByRole('button')).toHaveLength(0)
    expect(container.textContent).toBe(text)
    rerender(<Markdown text={text} citations={[citation(1), citation(2)]} />)
    expect(screen.getAllByRole('button').map((button) => button.getAttribute('aria-label'))).toEqual([
      'Source 1: report.pdf, page 3',
      'Source 1: report.pdf, page 3',
      'Source 2: report.pdf, page 4',
    ])
    expect(container.textContent).toContain('margin [7] and')
  })

  test('a source in a sheet is called by its rows', () => {
    render(<Markdown text="A [1]." citations={[{ ...citation(1), locator: { sheet: 'Costs', rows: [12, 40] } }]} />)
    expect(screen.getByRole('button', { name: 'Source 1: report.pdf, sheet Costs, rows 12–40' })).toBeTruthy()
  })

  test('a click tells which, and pointing shows the passage', async () => {
    const onCite = vi.fn<(citation: Citation) => void>()
    render(<Markdown text="A [1]." citations={[citation(1)]} onCite={onCite} />)
    const chip = screen.getByRole('button')
    await userEvent.hover(chip)
    await waitFor(() => expect(screen.getByRole('tooltip').textContent).toContain('Passage 1'))
    expect(chip.getAttribute('aria-describedby')).toBe(screen.getByRole('tooltip').id)
    fireEvent.keyDown(chip, { key: 'Escape' })
    await waitFor(() => expect(screen.queryByRole('tooltip')).toBeNull())
    fireEvent.click(chip)
    expect(onCite).toHaveBeenCalledWith(citation(1))
  })

  test('a mark for a deleted file stays, and says what is gone', async () => {
    render(<Markdown text="A [1]." citations={[{ ...citation(1), file_id: null, file_name: '', heading: '', text: '', boxes: [] }]} />)
    const chip = screen.getByRole('button', { name: 'Source 1: Deleted file, page 3' })
    await userEvent.hover(chip)
    await waitFor(() => expect(screen.getByRole('tooltip').textContent).toContain('This file was deleted'))
  })

  test('what its source does not contain is told of a mark, to eyes and to ears', async () => {
    render(<Markdown text="A in May 2020 [1] and [2], all 480." citations={[{ ...citation(1), unsupported: ['480', 'May 2020'] }, { ...citation(2), unsupported: [] }]} />)
    const [doubted, other] = screen.getAllByRole('button')
    expect(doubted?.getAttribute('aria-label')).toBe('Source 1: report.pdf, page 3. Not found in this source: 480, May 2020')
    expect(doubted?.textContent).toBe('1?')
    expect(other?.textContent).toBe('2')
    await userEvent.hover(doubted as HTMLElement)
    await waitFor(() => expect(screen.getByRole('tooltip').textContent).toContain('Not found in this source: 480, May 2020'))
  })
})

describe('a mark is in doubt for its own sentence only', () => {
  const doubted = (text: string, unsupported: string[]): boolean[] => {
    render(<Markdown text={text} citations={[{ ...citation(1), unsupported }]} />)
    return screen.getAllByRole('button').map((chip) => chip.textContent === '1?')
  }
  test.each([
    ['It was led by Ada. [1] It cost 4,812 pounds. [1]', ['4,812'], [false, true]],
    ['It cost 4,812 pounds [1]. It was led by Ada [1].', ['4,812'], [true, false]],
    ['It was led by **Ada [1]**. It cost **4,812** pounds. [1]', ['4,812'], [false, true]],
    ['As [1] says, it cost 4,812 pounds. It was led by Ada. [1]', ['4,812'], [true, false]],
    ['- It was led by Ada [1]\n- It cost 4,812 pounds [1]', ['4,812'], [false, true]],
    ['One. [1] Two. [1]', ['a', 'b', 'c', 'd', 'e'], [true, true]],
    ['He wrote “so it\u00a0is” [1]. Two. [1]', ['so it is'], [true, false]],
  ])('%s', (text, unsupported, expected) => {
    expect(doubted(text, unsupported)).toEqual(expected)
  })
})

describe('code', () => {
  test('is coloured once the highlighter is there, letter for letter the same', async () => {
    const code = 'def f(x):\n    return "a<b" # note\n'
    const { container } = render(<Markdown text={`\`\`\`python\n${code}\`\`\``} />)
    expect(screen.getByRole('region', { name: 'Code, Python' }).textContent).toBe(code.trimEnd())
    await waitFor(() => expect(container.querySelector('.hl-keyword')?.textContent).toBe('def'))
    expect(container.querySelector('pre')?.textContent).toBe(code.trimEnd())
  })

  test('is coloured line by line while it streams', async () => {
    const { container, rerender } = render(<Markdown text={'```js\nconst a = 1\nconst b'} streaming />)
    await waitFor(() => expect(container.querySelectorAll('.hl-keyword').length).toBe(1))
    expect(container.querySelector('code')?.textContent).toBe('const a = 1\nconst b')
    rerender(<Markdown text={'```js\nconst a = 1\nconst b = 2\n```\n'} />)
    await act(async () => undefined)
    expect(container.querySelectorAll('.hl-keyword').length).toBe(2)
  })

  test('copies exactly its text', async () => {
    const writeText = vi.fn<(text: string) => Promise<void>>(async () => undefined)
    vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText } })
    render(<Markdown text={'```\na  b\n\tc\n```'} />)
    fireEvent.click(screen.getByRole('button', { name: 'Copy code' }))
    await waitFor(() => expect(screen.getByRole('status').textContent).toBe('Copied'))
    expect(writeText).toHaveBeenCalledWith('a  b\n\tc')
    vi.unstubAllGlobals()
  })

  test.each(['bash', 'c', 'cpp', 'csharp', 'css', 'diff', 'dockerfile', 'go', 'ini', 'java', 'javascript', 'json', 'kotlin', 'makefile', 'markdown', 'php', 'python', 'r', 'ruby', 'rust', 'shell', 'sql', 'swift', 'typescript', 'xml', 'yaml'])(
    'the highlighter knows %s',
    (key) => {
      expect(languageOf(key).key).toBe(key)
      expect(highlight('x = "1" // # <a>', key)).not.toBeNull()
    },
  )

  test.each([
    ['py', 'python', 'Python'],
    ['{.ts}', 'typescript', 'TypeScript'],
    ['html title="x"', 'xml', 'HTML'],
    ['', null, 'Text'],
    ['brainfuck', null, 'brainfuck'],
    ['constructor', null, 'constructor'],
  ])('info %j', (info, key, label) => expect(languageOf(info)).toEqual({ key, label }))
})

describe('math', () => {
  test('is drawn by KaTeX; what is not valid stays as its source', async () => {
    const { container } = render(<Markdown text={'$x^2$ and $\\frac{1}$'} />)
    await waitFor(() => expect(container.querySelector('.katex')).not.toBeNull(), { timeout: 4000 })
    const [good, bad] = container.querySelectorAll('[data-math]')
    expect(good?.querySelector('math')).not.toBeNull()
    expect(good?.querySelector('code')).toBeNull()
    expect(bad?.querySelector('code')?.textContent).toBe('\\frac{1}')
  })

  test('a formula cannot make links or load images', async () => {
    const { container } = render(<Markdown text={'$x$ $\\href{javascript:alert(1)}{x}$ $\\includegraphics{https://evil.example/x.png}$'} />)
    await waitFor(() => expect(container.querySelector('.katex')).not.toBeNull(), { timeout: 4000 })
    expect(container.querySelector('a, img, [src]')).toBeNull()
  })
})

import { render, screen, waitFor } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { clearResources, type Citation, type FileRecord, type PageRecord } from '@/shared/api'
import { clearRecords } from '@/features/files'
import CitationViewer from '.'
import { findPassage } from './findPassage'

describe('finding a passage in the text of its page', () => {
  const marked = (page: string, passage: string) => findPassage(page, passage).map(([start, end]) => page.slice(start, end))

  test.each([
    ['One two. Three four. Five.', 'Three four.', ['Three four.']],
    ['One\ntwo three\n\nfour', 'One two three four', ['One\ntwo three\n\nfour']],
    ['über  straße', 'über straße', ['über  straße']],
    ['Header\nThe first sentence is here.\n[figure]\nThe second sentence is here.', 'The first sentence is here.\nThe second sentence is here.', ['The first sentence is here.', 'The second sentence is here.']],
    ['nothing of it', 'something else entirely', []],
    ['text', '', []],
    ['', 'text', []],
  ])('%j', (page, passage, expected) => expect(marked(page, passage)).toEqual(expected))

  test('parts that follow each other become one mark', () => {
    expect(marked('Alpha beta gamma delta.\n\nEpsilon zeta eta theta. End', 'Alpha beta gamma delta.\nEpsilon zeta eta theta.\nThis line is nowhere at all.')).toEqual([
      'Alpha beta gamma delta.\n\nEpsilon zeta eta theta.',
    ])
  })

  // A search that compares each place with the whole passage would not come to its end within a test's time.
  test('is linear enough for a long page', () => {
    const page = 'word '.repeat(400_000)
    expect(findPassage(page, `${'word '.repeat(4_000)}missing`)).toEqual([])
  })
})

const FILE: FileRecord = {
  id: 'f1',
  name: 'survey.pdf',
  size: 1,
  content_type: 'application/pdf',
  kind: 'pdf',
  state: 'ready',
  stage: null,
  page_count: 3,
  pages_ready: 3,
  pages_failed: [],
  searchable: 'hybrid',
  error: null,
  scanner: 'signatures',
  notices: [],
  seconds_left: null,
  created_at: '2026-01-01T00:00:00Z',
}
const page = (number: number, change: Partial<PageRecord> = {}): PageRecord => ({ number, state: 'ready', source: 'digital', width: 595, height: 842, error: null, ...change })
const cite = (n: number, change: Partial<Citation> = {}): Citation => ({
  n,
  passage_id: `p${n}`,
  file_id: 'f1',
  file_name: 'survey.pdf',
  page: 2,
  source: 'digital',
  boxes: [[0.1, 0.2, 0.5, 0.25]],
  text: 'Cedar beams carry the roof.',
  heading: 'Structure',
  ...change,
})

let file: FileRecord | null = FILE
let pages: PageRecord[] = []
let sheet: Pick<PageRecord, 'text' | 'row_numbers'> = {}

beforeEach(() => {
  file = FILE
  sheet = {}
  pages = [page(1), page(2, { source: 'ocr' }), page(3)]
  Element.prototype.scrollIntoView = vi.fn<() => void>()
  vi.stubGlobal('ResizeObserver', class {
    constructor(private readonly callback: (entries: { contentRect: { width: number } }[]) => void) {}
    observe() {
      this.callback([{ contentRect: { width: 500 } }])
    }
    disconnect() {}
  })
  vi.stubGlobal('fetch', async (path: string) => {
    const number = /pages\/(\d+)$/.exec(path)?.[1]
    const body = number
      ? { ...pages[Number(number) - 1], text: `Page ${number}.\nCedar beams\ncarry the roof. More.`, ...sheet }
      : path.endsWith('/pages')
        ? { results: pages, next: null }
        : file
    if (!file) return new Response(JSON.stringify({ code: 'not_found', detail: 'Gone.' }), { status: 404 })
    return new Response(JSON.stringify(body), { status: 200 })
  })
})

afterEach(() => {
  clearResources()
  clearRecords()
  vi.unstubAllGlobals()
})

describe('the viewer', () => {
  const show = (citation: Citation, all: Citation[] = [citation]) => {
    const onSelect = vi.fn<(citation: Citation) => void>()
    const onClose = vi.fn<() => void>()
    const view = render(<CitationViewer citation={citation} citations={all} onSelect={onSelect} onClose={onClose} />)
    return { ...view, onSelect, onClose }
  }
  const image = () => screen.findByRole<HTMLImageElement>('img')
  const load = (element: HTMLElement) => element.dispatchEvent(new Event('load', { bubbles: true }))

  test('shows the page with the passage marked and says that it is a scan', async () => {
    const { container } = show(cite(1))
    const picture = await image()
    expect(picture.getAttribute('src')).toBe('/api/files/f1/pages/2/image?width=800')
    load(picture)
    await waitFor(() => expect(container.querySelector<HTMLElement>('.mark')?.style.left).toBe('10%'))
    expect(container.querySelector<HTMLElement>('.mark')?.style.width).toBe('40%')
    expect(screen.getByText('OCR')).toBeTruthy()
  })

  test('turns pages with buttons and arrows; the mark stays on its page', async () => {
    const { container } = show(cite(1))
    load(await image())
    await userEvent.click(screen.getByRole('button', { name: 'Next page' }))
    const third = await image()
    expect(third.getAttribute('src')).toContain('/pages/3/')
    load(third)
    expect(container.querySelector('.mark')).toBeNull()
    expect(screen.getByRole<HTMLButtonElement>('button', { name: 'Next page' }).disabled).toBe(true)
    screen.getByRole('region', { name: 'Page 3' }).focus()
    await userEvent.keyboard('{ArrowLeft}')
    expect((await image()).getAttribute('src')).toContain('/pages/2/')
    await userEvent.keyboard('{ArrowLeft}{ArrowLeft}')
    await waitFor(() => expect(screen.getByRole<HTMLInputElement>('textbox').value).toBe('1'))
  })

  test('a number that is typed opens that page; nonsense does not', async () => {
    show(cite(1))
    await image()
    const field = screen.getByRole<HTMLInputElement>('textbox', { name: 'Page, of 3' })
    await userEvent.clear(field)
    await userEvent.type(field, '9{Enter}')
    expect(field.value).toBe('2')
    await userEvent.clear(field)
    await userEvent.type(field, '3{Enter}')
    expect((await image()).getAttribute('src')).toContain('/pages/3/')
  })

  test('the text tab marks the passage', async () => {
    const { container } = show(cite(1))
    await image()
    await userEvent.click(screen.getByRole('button', { name: 'Text' }))
    await waitFor(() => expect(container.querySelector('mark')?.textContent).toBe('Cedar beams\ncarry the roof.'))
  })

  test('a file without pictures shows its text at once', async () => {
    file = { ...FILE, kind: 'markdown', name: 'notes.md' }
    pages = pages.map((entry) => ({ ...entry, width: null, height: null }))
    const { container } = show(cite(1))
    await waitFor(() => expect(container.querySelector('mark')).not.toBeNull())
    expect(screen.queryByRole('img')).toBeNull()
  })

  test('a page of a sheet shows its rows by their numbers, with those of the passage marked', async () => {
    file = { ...FILE, kind: 'sheet', name: 'budget.xlsx' }
    sheet = {
      text: 'Costs\n\nItem | Sum\nRoof | 4100\n | 12\nDoor | 7 | with a | bar\n\nComment on A4: checked',
      row_numbers: [null, null, 11, 12, 13, 15, null, null],
    }
    const { container } = show(cite(1, { file_name: 'budget.xlsx', text: 'Roof | 4100\n| 12', boxes: [], locator: { sheet: 'Costs', rows: [12, 13] } }))
    await waitFor(() => expect(container.querySelector('table')).not.toBeNull())
    const cells = [...container.querySelectorAll('tr')].map((row) => [...row.children].map((cell) => cell.textContent))
    expect(cells).toEqual([
      ['11', 'Item', 'Sum'],
      ['12', 'Roof', '4100'],
      ['13', '', '12'],
      ['15', 'Door', '7', 'with a', 'bar'],
    ])
    const marked = [...container.querySelectorAll('tr[data-marked]')]
    expect(marked.map((row) => row.firstChild?.textContent)).toEqual(['12', '13'])
    expect(vi.mocked(Element.prototype.scrollIntoView).mock.contexts).toContain(marked[0])
    expect(screen.getByText('sheet Costs, rows 12–13')).toBeTruthy()
    expect([...container.querySelectorAll('p')].map((words) => words.textContent)).toContain('Comment on A4: checked')
    await userEvent.click(screen.getByRole('button', { name: 'Next page' }))
    await waitFor(() => expect(container.querySelector('tr[data-marked]')).toBeNull())
  })

  test('a picture that does not come gives way to the text', async () => {
    const { container } = show(cite(1))
    ;(await image()).dispatchEvent(new Event('error'))
    await waitFor(() => expect(container.querySelector('mark')).not.toBeNull())
  })

  test('says when a page is not read yet, or cannot be', async () => {
    pages[1] = page(2, { state: 'ocr', source: null })
    pages[2] = page(3, { state: 'failed', error: { code: 'ocr', message: 'The scan is too faint.' } })
    show(cite(1))
    expect(await screen.findByText('This page is a scan and is being read by OCR.')).toBeTruthy()
    await userEvent.click(screen.getByRole('button', { name: 'Next page' }))
    expect(await screen.findByText(/The scan is too faint/)).toBeTruthy()
  })

  test('of a file that was deleted while its answer was open, no passage is shown either', async () => {
    file = null
    show(cite(1))
    expect(await screen.findByText('This file is not here any more. It was deleted.')).toBeTruthy()
    expect(screen.queryByText('Cedar beams carry the roof.')).toBeNull()
  })

  test.each([null, 1])('a citation whose file was deleted says so, and the others stay within reach', async (table) => {
    const forgotten = cite(1, { file_id: null, file_name: '', text: '', heading: '', boxes: [], table })
    const { onSelect } = show(forgotten, [forgotten, cite(2)])
    expect(screen.getByText(/^This file was deleted, and the passage/)).toBeTruthy()
    expect(screen.getByRole('heading', { name: 'Deleted file' })).toBeTruthy()
    expect(screen.getByRole('button', { name: table ? '1 Deleted file table 1' : '1 Deleted file page 2' })).toBeTruthy()
    await userEvent.click(screen.getByRole('button', { name: '2 survey.pdf page 2' }))
    expect(onSelect).toHaveBeenCalledOnce()
  })

  test('lists all sources of the answer', async () => {
    const all = [cite(1), cite(2, { page: 3, passage_id: 'p2' })]
    const { onSelect, onClose, rerender } = show(all[0] as Citation, all)
    await image()
    await userEvent.click(screen.getByRole('button', { name: /2 survey.pdf page 3/ }))
    expect(onSelect).toHaveBeenCalledWith(all[1])
    rerender(<CitationViewer citation={all[1] as Citation} citations={all} onSelect={onSelect} onClose={onClose} />)
    expect((await image()).getAttribute('src')).toContain('/pages/3/')
    await userEvent.click(screen.getByRole('button', { name: 'Close' }))
    expect(onClose).toHaveBeenCalledOnce()
  })

  test('an answer of a table opens it with the SQL that gave it', async () => {
    const asked: string[] = []
    const column = { name: 'revenue', label: 'revenue', type: 'integer', unit: '', empty: 0, distinct: 2, least: '1', most: '2', samples: ['1', '2'] }
    const table = { number: 1, name: 'sales', sheet: '', title: '', page: null, header_row: 1, first_row: 2, last_row: 61, first_column: 1, last_column: 1, rows: 60, columns: [column], notes: [] }
    const rows = { columns: [{ name: 'total', type: 'HUGEINT' }], rows: [[2287]], row_numbers: null, truncated: false, sql: '', sources: [] }
    vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
      if (path.endsWith('/query')) asked.push((JSON.parse(init.body as string) as { sql: string }).sql)
      return new Response(JSON.stringify(path.endsWith('/tables') ? { results: [table] } : rows))
    })
    const cited = cite(3, { page: 0, table: 1, sql: 'SELECT sum(revenue) AS total FROM sales', file_name: 'sales.csv' })
    show(cited, [cite(1), cited])
    expect(await screen.findByText('2287')).toBeTruthy()
    expect(asked).toEqual(['SELECT sum(revenue) AS total FROM sales'])
    expect(screen.getByRole<HTMLTextAreaElement>('textbox', { name: 'SQL' }).value).toBe(cited.sql)
    expect(screen.getByRole('button', { name: /3 sales.csv table 1/ })).toBeTruthy()
  })
})

import { render, screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { clearResources, emitNotification, type FileRecord, type PageRecord } from '@/shared/api'
import { toastStore } from '@/shared/ui/toast'
import { deleting } from './deletions'
import FilesPage from './FilesPage'
import { canCancel, canRetry, shortDate } from './FileRow'
import { clearRecords } from './records'
import { clearUploads } from './uploads'

const file = (id: string, change: Partial<FileRecord> = {}): FileRecord => ({
  id,
  name: `${id}.pdf`,
  size: 214_000,
  content_type: 'application/pdf',
  kind: 'pdf',
  state: 'ready',
  stage: null,
  page_count: 12,
  pages_ready: 12,
  pages_failed: [],
  searchable: 'hybrid',
  error: null,
  scanner: 'signatures',
  notices: [],
  seconds_left: null,
  created_at: '2026-01-01T00:00:00Z',
  ...change,
})

let all: FileRecord[] = []
let calls: string[] = []
let tables: unknown[] = []

beforeEach(() => {
  all = []
  tables = []
  calls = []
  toastStore.set([])
  HTMLDialogElement.prototype.showModal ??= function showModal(this: HTMLDialogElement) {
    this.open = true
  }
  HTMLDialogElement.prototype.close ??= function close(this: HTMLDialogElement) {
    this.open = false
  }
  vi.stubGlobal('matchMedia', () => ({ matches: true, addEventListener: () => undefined, removeEventListener: () => undefined }))
  vi.stubGlobal('ResizeObserver', class {
    observe() {}
    disconnect() {}
  })
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    calls.push(`${init.method ?? 'GET'} ${path}`)
    if (init.method === 'DELETE') return new Response(null, { status: 204 })
    if (path.startsWith('/api/files?')) return new Response(JSON.stringify({ results: all, next: null }))
    const id = path.split('/')[3]
    const found = all.find((item) => item.id === id)
    if (path.endsWith('/summary')) return new Response(JSON.stringify({ state: 'none', sections: [], sentences: [] }))
    if (init.method === 'POST') return new Response(JSON.stringify({ ...found, state: 'processing', stage: 'verify' }))
    if (path.endsWith('/tables')) return new Response(JSON.stringify({ results: tables }))
    if (path.includes('/tables/')) return new Response(JSON.stringify({ columns: [], rows: [], row_numbers: null, truncated: false, sql: '', sources: [] }))
    if (path.endsWith('/pages')) {
      const pages: PageRecord[] = [
        { number: 1, state: 'ready', source: 'digital', width: 1, height: 1, error: null },
        { number: 2, state: 'failed', source: null, width: 1, height: 1, error: { code: 'ocr', message: 'Too faint.' } },
      ]
      return new Response(JSON.stringify({ results: pages, next: null }))
    }
    return new Response(JSON.stringify(found))
  })
})

afterEach(() => {
  clearUploads()
  clearRecords()
  clearResources()
  deleting.set(new Set())
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

test('nothing yet', async () => {
  render(<FilesPage onAsk={() => undefined} />)
  expect(await screen.findByRole('heading', { name: 'No files yet' })).toBeTruthy()
})

test('the newest first, found by name, kept fresh by notifications', async () => {
  all = [file('older'), file('newer', { created_at: '2026-02-01T00:00:00Z', state: 'processing', stage: 'parse', page_count: 12, pages_ready: 3 })]
  render(<FilesPage onAsk={() => undefined} />)
  const list = await screen.findByRole('list', { name: 'Your files' })
  const names = () => within(list).getAllByRole('listitem').map((row) => row.querySelector('.name')?.textContent)
  expect(names()).toEqual(['newer.pdf', 'older.pdf'])
  emitNotification({ type: 'file', file: file('newer', { state: 'processing', stage: 'ocr', page_count: 12, pages_ready: 8 }) })
  expect(await within(list).findByText('8 of 12 pages ready, 4 being read (scans, OCR)')).toBeTruthy()
  await userEvent.type(screen.getByRole('searchbox'), 'old')
  await waitFor(() => expect(names()).toEqual(['older.pdf']))
  await userEvent.type(screen.getByRole('searchbox'), 'x')
  expect(await screen.findByText('No file has “oldx” in its name.')).toBeTruthy()
})

async function choose(name: string, action: string) {
  await userEvent.click(await screen.findByRole('button', { name: `Actions for ${name}` }))
  await userEvent.click(screen.getByRole('menuitem', { name: action }))
}

test('a deletion is asked about and can be undone', async () => {
  all = [file('a')]
  render(<FilesPage onAsk={() => undefined} />)
  await choose('a.pdf', 'Delete')
  await userEvent.click(screen.getByRole('button', { name: 'Delete' }))
  await waitFor(() => expect(screen.queryByRole('list', { name: 'Your files' })).toBeNull())
  expect(toastStore.get()[0]?.text).toBe('a.pdf deleted')
  toastStore.get()[0]?.action?.run()
  expect(await screen.findByRole('list', { name: 'Your files' })).toBeTruthy()
  expect(calls.some((call) => call.startsWith('DELETE'))).toBe(false)
})

test('a deletion that is not undone is sent', async () => {
  all = [file('a')]
  render(<FilesPage onAsk={() => undefined} />)
  await choose('a.pdf', 'Delete')
  vi.useFakeTimers({ shouldAdvanceTime: true })
  await userEvent.click(screen.getByRole('button', { name: 'Delete' }))
  await vi.advanceTimersByTimeAsync(8000)
  expect(calls).toContain('DELETE /api/files/a')
})

test('leaving the page sends what is to be deleted', async () => {
  all = [file('a')]
  render(<FilesPage onAsk={() => undefined} />)
  await choose('a.pdf', 'Delete')
  await userEvent.click(screen.getByRole('button', { name: 'Delete' }))
  window.dispatchEvent(new Event('pagehide'))
  expect(calls).toContain('DELETE /api/files/a')
})

test('a failed file says why and can be read again', async () => {
  all = [file('a', { state: 'failed', error: { code: 'crashed', message: 'Reading failed.' } })]
  render(<FilesPage onAsk={() => undefined} />)
  expect(await screen.findByText('Reading failed.')).toBeTruthy()
  await choose('a.pdf', 'Read again')
  expect(await screen.findByText('Checking the file')).toBeTruthy()
  expect(calls).toContain('POST /api/files/a/retry')
})

test('a file without vectors can be read again when none are being made', () => {
  expect(canRetry(file('a', { searchable: 'keyword', stage: 'embed' }))).toBe(false)
  expect(canRetry(file('a', { searchable: 'keyword' }))).toBe(true)
  expect(canRetry(file('a'))).toBe(false)
})

test('reading can be stopped from the keyboard, and the pages that were not read are told', async () => {
  all = [file('a', { state: 'processing', stage: 'parse', page_count: 2, pages_ready: 1, seconds_left: 40 })]
  const passed = vi.mocked(fetch)
  const stopped = { ...all[0], state: 'partial', stage: null, pages_failed: [2], seconds_left: null, error: { code: 'cancelled', message: 'Reading was stopped: page 2 was not read.' } }
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    if (path.endsWith('/cancel')) calls.push(`${init.method} ${path}`)
    if (path.endsWith('/cancel')) return new Response(JSON.stringify(stopped))
    if (!path.endsWith('/pages')) return passed(path, init)
    const page = { number: 2, state: 'failed', source: null, width: null, height: null, error: { code: 'cancelled', message: 'Not read.' } }
    return new Response(JSON.stringify({ results: [page], next: null }))
  })
  render(<FilesPage onAsk={() => undefined} />)
  expect(await screen.findByText('1 of 2 pages ready, 1 being read, about 40 seconds left')).toBeTruthy()
  screen.getByRole('button', { name: /^a.pdf/ }).focus()
  await userEvent.keyboard('{Enter}')
  const dialog = await screen.findByRole('dialog')
  within(dialog).getByRole('button', { name: 'Stop reading' }).focus()
  await userEvent.keyboard('{Enter}')
  expect(await within(dialog).findByText('Stopped: 1 of 2 pages read')).toBeTruthy()
  expect(calls).toContain('POST /api/files/a/cancel')
  expect(within(dialog).queryByRole('button', { name: 'Stop reading' })).toBeNull()
  expect(await within(dialog).findByRole('button', { name: 'Page 2, not read, because reading was stopped' })).toBeTruthy()
  await userEvent.click(within(dialog).getByRole('button', { name: 'Read the missing pages' }))
  expect(calls).toContain('POST /api/files/a/retry')
})

test('only what is being read can be stopped', () => {
  const stages = ['verify', 'parse', 'ocr', 'index', 'embed'] as const
  expect(stages.filter((stage) => canCancel(file('a', { state: 'processing', stage })))).toEqual(['verify', 'parse', 'ocr'])
  expect(canCancel(file('a'))).toBe(false)
})

test('a protected file asks for its password until the right one is given', async () => {
  all = [file('a', { state: 'needs_password', error: { code: 'encrypted', message: 'The file is protected with a password.' } })]
  const passed = vi.mocked(fetch)
  const answers = [
    new Response(JSON.stringify({ code: 'unreadable_file', detail: 'This password does not open the file.', reason: 'wrong_password' }), { status: 422 }),
    new Response(JSON.stringify({ ...all[0], state: 'processing', stage: 'verify', error: null })),
  ]
  const sent: unknown[] = []
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    if (!path.endsWith('/password')) return passed(path, init)
    sent.push(JSON.parse(init.body as string))
    return answers.shift()
  })
  render(<FilesPage onAsk={() => undefined} />)
  await userEvent.click(await screen.findByRole('button', { name: /^a.pdf/ }))
  const dialog = await screen.findByRole('dialog')
  const field = await within(dialog).findByLabelText('Password of the file')
  await userEvent.type(field, 'guess')
  await userEvent.click(within(dialog).getByRole('button', { name: 'Open' }))
  expect(await within(dialog).findByText('This password does not open the file.')).toBeTruthy()
  await userEvent.clear(field)
  await userEvent.type(field, 'sesame ')
  await userEvent.click(within(dialog).getByRole('button', { name: 'Open' }))
  expect(await within(dialog).findByText('Checking the file')).toBeTruthy()
  expect(within(dialog).queryByLabelText('Password of the file')).toBeNull()
  expect(sent).toEqual([{ password: 'guess' }, { password: 'sesame ' }])
})

test('details show each page, and asking hands the file on', async () => {
  all = [file('a', { state: 'partial', page_count: 2, pages_ready: 1, pages_failed: [2] })]
  const onAsk = vi.fn<(file: FileRecord) => void>()
  render(<FilesPage onAsk={onAsk} />)
  await userEvent.click(await screen.findByRole('button', { name: /^a.pdf/ }))
  const dialog = await screen.findByRole('dialog')
  expect(await within(dialog).findByRole('button', { name: 'Page 2, could not be read' })).toBeTruthy()
  await userEvent.click(within(dialog).getByRole('button', { name: 'Ask about it' }))
  expect(onAsk).toHaveBeenCalledWith(expect.objectContaining({ id: 'a' }))
  await userEvent.click(within(dialog).getByRole('button', { name: 'Page 2, could not be read' }))
  expect(await within(dialog).findByText(/Too faint/)).toBeTruthy()
})

test('a file with tables leads to their rows', async () => {
  all = [file('a', { kind: 'sheet', name: 'a.xlsx' })]
  tables = [{ number: 1, name: 'sales', sheet: 'Sales', title: '', page: null, first_row: 2, last_row: 61, rows: 60, columns: [], notes: [] }]
  render(<FilesPage onAsk={() => undefined} />)
  await userEvent.click(await screen.findByRole('button', { name: /^a.xlsx/ }))
  const dialog = await screen.findByRole('dialog')
  await userEvent.click(await within(dialog).findByRole('button', { name: 'Sales 60 rows, 0 columns' }))
  expect(await within(dialog).findByRole('region', { name: 'Rows of sales' })).toBeTruthy()
  await userEvent.click(within(dialog).getByRole('button', { name: 'Close' }))
  expect(await within(dialog).findByRole('button', { name: 'Sales 60 rows, 0 columns' })).toBeTruthy()
})

test('dates are as short as they can be', () => {
  const now = new Date('2026-06-15T12:00:00')
  expect(shortDate('2026-06-15T09:05:00', now)).toMatch(/9:05|09:05/)
  expect(shortDate('2026-05-03T09:05:00', now)).not.toContain('2026')
  expect(shortDate('2025-05-03T09:05:00', now)).toContain('2025')
})

import { render, screen, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { beforeEach, expect, test, vi } from 'vitest'
import { clearResources, type TableAnswer, type TableRecord } from '@/shared/api'
import { TableViewer } from './index'

const column = (name: string, change: Partial<TableRecord['columns'][number]> = {}): TableRecord['columns'][number] => ({
  name, label: name, type: 'text', empty: 0, distinct: 2, least: '', most: '', samples: [], unit: '', raw: '', unread: 0, ...change,
})

const table = (number: number, name: string, change: Partial<TableRecord> = {}): TableRecord => ({
  number, name, sheet: name.toUpperCase(), title: '', page: null, header_row: 1, first_row: 2, last_row: 251, first_column: 1, last_column: 2,
  rows: 250, columns: [column('region', { label: 'Region' }), column('revenue_eur', { label: 'Revenue (EUR)', type: 'decimal', least: '1', most: '9' })], notes: [], ...change,
})

const rows = (from: number, count: number): TableAnswer => ({
  columns: [{ name: 'region', type: 'VARCHAR' }, { name: 'revenue_eur', type: 'DECIMAL(18,2)' }],
  rows: Array.from({ length: count }, (_, index) => [index === 0 ? null : `Region ${from + index}`, from + index]),
  row_numbers: Array.from({ length: count }, (_, index) => from + index + 2),
  truncated: false,
  sql: 'SELECT',
  sources: [],
})

let tables: TableRecord[] = []
let calls: string[] = []
let answers: Response[] = []

beforeEach(() => {
  clearResources()
  tables = [table(1, 'sales'), table(2, 'costs', { rows: 3 })]
  calls = []
  answers = []
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    calls.push(path.endsWith('/query') ? (JSON.parse(init.body as string) as { sql: string }).sql : path)
    if (path.endsWith('/query')) return answers.shift() ?? new Response('{}', { status: 500 })
    if (path.endsWith('/tables')) return new Response(JSON.stringify({ results: tables }))
    const offset = Number(new URLSearchParams(path.split('?')[1]).get('offset'))
    return new Response(JSON.stringify(rows(offset, Math.min(100, 250 - offset))))
  })
})

const show = (props: Partial<Parameters<typeof TableViewer>[0]> = {}) => render(<TableViewer fileId="f" fileName="a.xlsx" onClose={() => undefined} {...props} />)

test('a table shows its rows in pages, with their places in the sheet', async () => {
  show()
  const grid = await screen.findByRole('region', { name: 'Rows of sales' })
  expect(within(grid).getByRole('columnheader', { name: 'revenue_eur Revenue (EUR)' })).toBeTruthy()
  expect(within(grid).getByText('empty')).toBeTruthy()
  expect(within(grid).getByRole('rowheader', { name: '3' })).toBeTruthy()
  expect(screen.getByText('Rows 1 to 100 of 250')).toBeTruthy()
  await userEvent.click(screen.getByRole('button', { name: 'Next rows' }))
  await userEvent.click(screen.getByRole('button', { name: 'Next rows' }))
  expect(await screen.findByText('Rows 201 to 250 of 250')).toBeTruthy()
  expect(screen.getByRole('button', { name: 'Next rows' })).toHaveProperty('disabled', true)
})

test('another table is chosen by its sheet', async () => {
  show()
  await userEvent.selectOptions(await screen.findByRole('combobox', { name: /Table/ }), 'costs')
  expect(await screen.findByRole('region', { name: 'Rows of costs' })).toBeTruthy()
  expect(calls).toContain('/api/files/f/tables/2?offset=0&limit=100')
})

test('SQL runs with Ctrl+Enter, and the table comes back', async () => {
  answers = [new Response(JSON.stringify({ ...rows(0, 2), row_numbers: null, truncated: true }))]
  show()
  const box = await screen.findByRole('textbox', { name: 'SQL' })
  expect((box as HTMLTextAreaElement).value).toContain('FROM sales')
  await userEvent.clear(box)
  await userEvent.type(box, 'SELECT 1{Control>}{Enter}{/Control}')
  expect(await screen.findByRole('region', { name: 'Answer' })).toBeTruthy()
  expect(calls).toContain('SELECT 1')
  expect(screen.getByText('The first 2 rows; there are more.')).toBeTruthy()
  await userEvent.click(screen.getByRole('button', { name: 'Show the table' }))
  expect(screen.getByRole('region', { name: 'Rows of sales' })).toBeTruthy()
})

test('what is wrong with the SQL is said below it', async () => {
  answers = [new Response(JSON.stringify({ code: 'query_failed', detail: 'There is no column x. Did you mean region?' }), { status: 422 })]
  show()
  await userEvent.click(await screen.findByRole('button', { name: 'Run' }))
  expect(await screen.findByText('There is no column x. Did you mean region?')).toBeTruthy()
  expect(screen.getByRole('textbox', { name: 'SQL' }).getAttribute('aria-invalid')).toBe('true')
})

test('a cited answer is asked again when it opens', async () => {
  answers = [new Response(JSON.stringify({ ...rows(0, 0), rows: [], row_numbers: null }))]
  show({ table: 2, sql: 'SELECT sum(revenue_eur) FROM costs' })
  expect(await screen.findByText('No rows match.')).toBeTruthy()
  expect(calls).toContain('SELECT sum(revenue_eur) FROM costs')
})

test('a file without tables, and one that is gone, say so', async () => {
  tables = []
  const { unmount } = show()
  expect(await screen.findByText('There are no tables in this file.')).toBeTruthy()
  unmount()
  clearResources()
  vi.stubGlobal('fetch', async () => new Response(JSON.stringify({ code: 'not_found', detail: 'Gone.' }), { status: 404 }))
  show()
  expect(await screen.findByText('This file was deleted.')).toBeTruthy()
})

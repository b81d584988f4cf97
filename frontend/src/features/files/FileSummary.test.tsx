import { render, screen, waitFor, within } from '@testing-library/react'
import userEvent from '@testing-library/user-event'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { clearResources, type FileRecord, type FileSummary as Summary } from '@/shared/api'
import { FileSummary } from './FileSummary'
import { asPlainText, partsOf, toldOf } from './summary'

const file = { id: 'f', name: 'valley.pdf', state: 'ready', page_count: 120 } as FileRecord

const summary = (change: Partial<Summary> = {}): Summary => ({
  state: 'none',
  model: null,
  waiting: false,
  outdated: false,
  steps: 0,
  steps_done: 0,
  sections: [],
  sentences: [],
  pages_covered: 0,
  page_count: 120,
  error: null,
  ...change,
})

const section = (first: number, last: number, text: string | null) => ({ title: `Chapter ${first}`, first_page: first, last_page: last, pages_given: 1, text })
const WORKING = summary({ state: 'working', model: 'small', steps: 3, steps_done: 1, sections: [section(1, 60, 'Bridges. [p. 3]'), section(61, 120, null)] })
const READY = summary({
  state: 'ready',
  model: 'small',
  steps: 3,
  steps_done: 3,
  pages_covered: 40,
  sections: [section(1, 60, 'Bridges. [p. 3]'), section(61, 120, 'Floods. [p. 70, 71]')],
  sentences: [
    { text: 'It is about bridges.', pages: [3, 4], matched: false },
    { text: 'It has floods.', pages: [70], matched: true },
  ],
})

let answers: (Summary | { status: number; detail: string })[] = []
let calls: string[] = []

beforeEach(() => {
  calls = []
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    calls.push(`${init.method ?? 'GET'} ${path}`)
    const answer = answers.length > 1 ? answers.shift()! : answers[0]!
    if ('status' in answer) return new Response(JSON.stringify({ code: 'no_replica', detail: answer.detail }), { status: answer.status })
    return new Response(JSON.stringify(answer))
  })
})

afterEach(() => {
  clearResources()
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const show = () => {
  const onPage = vi.fn<(page: number) => void>()
  render(<FileSummary file={file} onPage={onPage} />)
  return onPage
}

test('it is made when it is asked for, and watched until it is there', async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true })
  answers = [summary(), WORKING, READY]
  show()
  await userEvent.setup({ advanceTimers: vi.advanceTimersByTime }).click(await screen.findByRole('button', { name: 'Summarise' }))
  expect(await screen.findByText('1 of 3 parts are made.')).toBeTruthy()
  expect(screen.getByRole('progressbar', { name: 'Summary' }).getAttribute('value')).toBe('1')
  await vi.advanceTimersByTimeAsync(1600)
  expect(await screen.findByText(/It is about bridges/)).toBeTruthy()
  const asked = calls.length
  await vi.advanceTimersByTimeAsync(10_000)
  expect(calls.length).toBe(asked)
  expect(calls.slice(0, 3)).toEqual(['GET /api/files/f/summary', 'POST /api/files/f/summary', 'GET /api/files/f/summary'])
})

test('sentences and sections open their pages, by keyboard too', async () => {
  answers = [READY]
  const onPage = show()
  await screen.findByText(/It is about bridges/)
  screen.getByRole('button', { name: 'Open page 4' }).focus()
  await userEvent.keyboard('{Enter}')
  expect(onPage).toHaveBeenLastCalledWith(4)
  expect(screen.getAllByRole('button', { name: 'Open page 70' })[0]!.dataset['matched']).toBe('true')
  await userEvent.click(screen.getByText('By section'))
  const part = screen.getByText(/Chapter 61/).closest('li')!
  await userEvent.click(within(part).getByRole('button', { name: 'Open pages 61 to 120' }))
  expect(onPage).toHaveBeenLastCalledWith(61)
  await userEvent.click(within(part).getByRole('button', { name: 'Open page 71' }))
  expect(onPage).toHaveBeenLastCalledWith(71)
  expect(screen.getByText('Made from 40 of 120 pages by small. Check what matters on the pages.')).toBeTruthy()
})

test('what was refused or failed says why, and can be tried again', async () => {
  answers = [summary(), { status: 503, detail: 'No model is running that could summarise it.' }]
  show()
  await userEvent.click(await screen.findByRole('button', { name: 'Summarise' }))
  expect((await screen.findByRole('alert')).textContent).toContain('No model is running')
  clearResources()
})

test('a summary that failed, or that is older than the file', async () => {
  answers = [summary({ state: 'failed', error: { code: 'no_model', message: 'No model had time.' } }), { ...READY, outdated: true }]
  show()
  expect(await screen.findByText('No model had time.')).toBeTruthy()
  await userEvent.click(screen.getByRole('button', { name: 'Try again' }))
  expect(await screen.findByText(/More of the file was read/)).toBeTruthy()
  await waitFor(() => expect(screen.getByRole('button', { name: 'Make it anew' })).toBeTruthy())
})

test('a summary that cannot be loaded says so', async () => {
  answers = [{ status: 500, detail: 'It broke.' }]
  show()
  expect(await screen.findByText('It broke.')).toBeTruthy()
})

describe('words', () => {
  test('pages are taken out of a section', () => {
    expect(partsOf('Bridges. [p. 3] Floods. [p. 70, 71]')).toEqual(['Bridges.', [3], ' Floods.', [70, 71]])
    expect(partsOf('None')).toEqual(['None'])
  })

  test('where it stands', () => {
    expect(toldOf(summary({ state: 'working' }))).toBe('It begins in a moment.')
    expect(toldOf(summary({ state: 'working', waiting: true }))).toBe('Waiting for a model that has time.')
    expect(toldOf({ ...READY, pages_covered: 120, model: null })).toBe('Made from all 120 pages. Check what matters on the pages.')
    expect(toldOf({ ...READY, pages_covered: 1, page_count: 1 })).toContain('Made from the page by small')
  })

  test('on the clipboard', () => {
    expect(asPlainText('valley.pdf', READY)).toBe(
      'valley.pdf\n\nIt is about bridges. [p. 3, 4] It has floods. [p. 70]\n\nMade from 40 of 120 pages by small. Check what matters on the pages.\n',
    )
  })
})

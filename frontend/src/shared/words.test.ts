import { expect, test } from 'vitest'
import { pageRange, sourcePlace, surveyText } from './words'

const file = { file_id: 'f', file_name: 'valley.pdf', page_count: 120, pages: [1, 60, 120], summarised: [], found: [] }

test('a source stands on a page or in a table', () => {
  expect(sourcePlace({ page: 3, table: null })).toBe('page 3')
  expect(sourcePlace({ page: 0, table: 2 })).toBe('table 2')
})

test.each([
  [{ sheet: 'Costs', rows: [12, 40] }, 'sheet Costs, rows 12–40'],
  [{ rows: [1204, 1204] }, 'row 1204'],
  [{ sheet: 'Costs' }, 'sheet Costs'],
  [{ slide: 4 }, 'slide 4'],
  [{ part: 'body' }, 'body'],
  [{ part: 'terms.pdf' }, 'terms.pdf, page 3'],
  [{ part: 'i.eml, costs.xlsx', sheet: 'A', rows: [1, 2] }, 'i.eml, costs.xlsx, sheet A, rows 1–2'],
])('a source that no page finds is at %j', (locator, words) => {
  expect(sourcePlace({ page: 3, table: null, locator })).toBe(words)
  expect(sourcePlace({ page: 0, table: 2, locator })).toBe('table 2')
})

test('pages are named in runs', () => {
  expect(pageRange([9, 7, 8, 12])).toBe('pages 7–9, 12')
  expect(pageRange([2])).toBe('page 2')
})

test('an answer about a whole file says how much of it it rests on', () => {
  expect(surveyText({ way: 'spread', words: [], files: [file] })).toBe('This covers 3 of 120 pages of valley.pdf.')
  expect(surveyText({ way: 'spread', words: [], files: [{ ...file, page_count: 3, pages: [1, 2, 3] }] })).toBe('This covers all 3 pages of valley.pdf.')
  expect(surveyText({ way: 'summary', words: [], files: [{ ...file, summarised: [1, 2, 3] }] })).toBe(
    'This covers 5 of 120 pages of valley.pdf, 3 by their text and the rest by summaries.',
  )
})

test('a search of every page says where the words are and what was too much', () => {
  const words = ['deadline']
  expect(surveyText({ way: 'words', words, files: [{ ...file, found: [1, 2, 60] }] })).toBe(
    '“deadline” was looked for on all 120 pages of valley.pdf and is on pages 1–2, 60. The text of 1 of these was too much for the model.',
  )
  expect(surveyText({ way: 'words', words, files: [file] })).toContain('is on none of them.')
})

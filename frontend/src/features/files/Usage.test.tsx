import { render, screen, waitFor } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'
import { clearResources } from '@/shared/api'
import { Usage, usageText } from './Usage'

afterEach(() => {
  clearResources()
  vi.unstubAllGlobals()
})

test.each([
  [{ files: 1, bytes: 2_000, files_at_most: null, bytes_at_most: null }, '1 file, 2 kB.'],
  [{ files: 1, bytes: 2_000, files_at_most: 10, bytes_at_most: 3_000_000 }, '1 of 10 files, 2 kB of 3.0 MB.'],
])('%o', (kept, text) => {
  expect(usageText(kept)).toBe(text)
})

test('one’s own, the organization’s where it has a limit, and anew when the files change', async () => {
  let bytes = 1_000
  const everybody = { files: 5, bytes: 9_000, files_at_most: null, bytes_at_most: 10_000 }
  vi.stubGlobal('fetch', async () => {
    const mine = { files: 2, bytes, files_at_most: null, bytes_at_most: null }
    return new Response(JSON.stringify({ mine, organization: everybody }))
  })
  const view = render(<Usage changes={1} />)
  const line = await screen.findByLabelText('Storage used')
  expect(line.textContent).toBe('2 files, 1 kB. Your organization: 5 files, 9 kB of 10 kB.')
  bytes = 3_000
  view.rerender(<Usage changes={2} />)
  await waitFor(() => expect(line.textContent).toContain('2 files, 3 kB.'))
})

test('nothing where it cannot be told', async () => {
  vi.stubGlobal('fetch', async () => new Response('{}', { status: 500 }))
  const { container } = render(<Usage changes={1} />)
  await new Promise((resolve) => setTimeout(resolve))
  expect(container.textContent).toBe('')
})

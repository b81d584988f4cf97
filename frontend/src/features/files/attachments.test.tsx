import { act, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { useEffect, useRef, useState } from 'react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { emitNotification, type FileRecord } from '@/shared/api'
import { toastStore } from '@/shared/ui/toast'
import { Attachments, DropZone, attachmentFromFile, clearRecords, clearUploads, type Attachment, type AttachmentsApi } from '.'
import type { UploadTransport } from './transport'
import { setTransport } from './uploads'

const record = (change: Partial<FileRecord> = {}): FileRecord => ({
  id: 'f1',
  name: 'a.pdf',
  size: 4,
  content_type: 'application/pdf',
  kind: 'pdf',
  state: 'uploading',
  stage: 'upload',
  page_count: null,
  pages_ready: 0,
  pages_failed: [],
  searchable: 'none',
  error: null,
  scanner: null,
  notices: [],
  seconds_left: null,
  created_at: '2026-01-01T00:00:00Z',
  ...change,
})

let finishPart: () => void = () => undefined
const removed: string[] = []
const transport: UploadTransport = {
  create: async () => ({ file: record(), upload: { part_size: 10, parts: [{ number: 1, url: '/storage/1', size: 4 }], expires_at: '' } }),
  status: async () => expect.unreachable(),
  put: (_url, _body, onProgress) => {
    onProgress(2)
    return new Promise((resolve) => {
      finishPart = () => resolve('"e"')
    })
  },
  complete: async () => record({ state: 'processing', stage: 'verify' }),
  remove: async (id) => void removed.push(id),
}

let latest: readonly Attachment[] = []

function Composer({ start = [] }: { start?: readonly Attachment[] }) {
  const [value, setValue] = useState<readonly Attachment[]>(start)
  const api = useRef<AttachmentsApi>(null)
  useEffect(() => {
    latest = value
  }, [value])
  return (
    <>
      <Attachments ref={api} value={value} onChange={(update) => setValue(update)} conversationId={null} />
      <button type="button" onClick={() => api.current?.choose()}>
        choose
      </button>
    </>
  )
}

const choose = (files: File[]) => fireEvent.change(screen.getByLabelText('Files to upload'), { target: { files } })
const pdf = () => new File(['%PDF'], 'a.pdf', { type: 'application/pdf', lastModified: 1 })

beforeEach(() => {
  localStorage.clear()
  removed.length = 0
  setTransport(transport)
})
afterEach(() => {
  clearUploads()
  clearRecords()
})

test('a chosen file is followed from its first byte to its last page', async () => {
  render(<Composer />)
  choose([pdf()])
  expect(latest).toMatchObject([{ name: 'a.pdf', state: 'uploading' }])
  expect(await screen.findByText('Uploading 2 B of 4 B')).toBeTruthy()
  act(() => finishPart())
  await waitFor(() => expect(latest).toMatchObject([{ state: 'uploaded', file: { id: 'f1', state: 'processing' } }]))
  expect(screen.getByText('Checking the file')).toBeTruthy()
  act(() => emitNotification({ type: 'file', file: record({ state: 'processing', stage: 'parse', page_count: 12, pages_ready: 3 }) }))
  expect(screen.getByText('3 of 12 pages ready, 9 being read')).toBeTruthy()
  act(() => emitNotification({ type: 'file', file: record({ state: 'ready', stage: null, page_count: 12, pages_ready: 12 }) }))
  expect(screen.getByText('12 pages')).toBeTruthy()
})

test('the same file twice is one attachment; a refused one says why', async () => {
  render(<Composer />)
  choose([pdf(), new File(['x'], 'a.exe')])
  choose([pdf()])
  expect(latest.map((item) => item.state)).toEqual(['uploading', 'failed'])
  expect(screen.getByText(/Files ending in \.exe cannot be read/)).toBeTruthy()
})

test('removing an unfinished one cancels it on the server', async () => {
  render(<Composer />)
  choose([pdf()])
  await waitFor(() => expect(latest[0]?.file).not.toBeNull())
  fireEvent.click(screen.getByRole('button', { name: 'Cancel a.pdf' }))
  expect(latest).toEqual([])
  await waitFor(() => expect(removed).toEqual(['f1']))
})

test('removing a finished one keeps the file', async () => {
  render(<Composer start={[attachmentFromFile(record({ state: 'ready', page_count: 2 }))]} />)
  fireEvent.click(screen.getByRole('button', { name: 'Remove a.pdf' }))
  expect(latest).toEqual([])
  expect(removed).toEqual([])
})

test('an upload that nobody knows any more is told as interrupted', async () => {
  render(<Composer start={[{ key: 'gone', name: 'a.pdf', size: 4, state: 'uploading', progress: 0.5, file: null, error: null }]} />)
  await waitFor(() => expect(latest[0]?.state).toBe('failed'))
  expect(screen.getByText('The upload was interrupted. Remove the file and choose it again.')).toBeTruthy()
})

test('no more than twenty', () => {
  render(<Composer />)
  choose(Array.from({ length: 23 }, (_, index) => new File(['x'], `${index}.txt`)))
  expect(latest).toHaveLength(20)
  expect(toastStore.get().at(-1)?.text).toBe('A message can have up to 20 files.')
})

test('files dropped anywhere on the window are taken', () => {
  const onFiles = vi.fn<(files: readonly File[]) => void>()
  render(<DropZone onFiles={onFiles} />)
  const file = pdf()
  const dataTransfer = { types: ['Files'], items: [{ kind: 'file', getAsFile: () => file, webkitGetAsEntry: () => null }] }
  fireEvent.dragEnter(window, { dataTransfer })
  expect(screen.getByText('Drop files to ask about them')).toBeTruthy()
  fireEvent.dragEnter(document.body, { dataTransfer })
  fireEvent.dragLeave(window, { dataTransfer })
  expect(screen.queryByText('Drop files to ask about them')).not.toBeNull()
  fireEvent.drop(window, { dataTransfer })
  expect(onFiles).toHaveBeenCalledWith([file])
  expect(screen.queryByText('Drop files to ask about them')).toBeNull()
})

test('a protected one asks for its password where it is attached', async () => {
  const opened = record({ state: 'processing', stage: 'verify' })
  vi.stubGlobal('fetch', async () => new Response(JSON.stringify(opened)))
  render(<Composer start={[attachmentFromFile(record({ state: 'needs_password' }))]} />)
  fireEvent.click(screen.getByRole('button', { name: 'Enter the password of a.pdf' }))
  fireEvent.change(await screen.findByLabelText('Password of the file'), { target: { value: 'sesame' } })
  fireEvent.click(screen.getByRole('button', { name: 'Open' }))
  expect(await screen.findByText('Checking the file')).toBeTruthy()
  expect(screen.queryByRole('dialog')).toBeNull()
  expect(screen.queryByRole('button', { name: /Enter the password/ })).toBeNull()
})

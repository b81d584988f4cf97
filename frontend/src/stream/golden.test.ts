/** The golden streams that the server's tests read too: the same end whatever way the bytes were cut. */
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseEvent } from './events'
import { initialView, reduce, type RunView } from './reducer'
import { SseParser } from './sse'

const folder = resolve(import.meta.dirname, '../../../tests/contracts/golden')
const names = readdirSync(folder)
  .filter((name) => name.endsWith('.sse'))
  .map((name) => name.slice(0, -4))

/** Read as the transport does: bytes -> text -> frames -> events -> view. */
function read(chunks: Iterable<Uint8Array>): RunView {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const parser = new SseParser()
  let view = initialView
  for (const chunk of chunks) {
    for (const frame of parser.push(decoder.decode(chunk, { stream: true }))) {
      const event = parseEvent(frame.data)
      if (event) view = reduce(view, { seq: Number(frame.id), event })
    }
  }
  return view
}

const seen = ({ text, state, citations, error, notices, seq }: RunView) => ({ text, state, citations, error, notices, seq })

test('there are golden streams to read', () => {
  expect(names.length).toBeGreaterThanOrEqual(8)
})

describe.each(names)('%s', (name) => {
  const bytes = new Uint8Array(readFileSync(resolve(folder, `${name}.sse`)))
  const expected: unknown = JSON.parse(readFileSync(resolve(folder, `${name}.json`), 'utf8'))

  test('in one piece', () => {
    expect(seen(read([bytes]))).toEqual(expected)
  })

  test('cut in two at every byte', () => {
    const wanted = JSON.stringify(seen(read([bytes])))
    const cuts = Array.from({ length: bytes.length + 1 }, (_, at) => at)
    const wrong = cuts.filter((at) => JSON.stringify(seen(read([bytes.subarray(0, at), bytes.subarray(at)]))) !== wanted)
    expect(wrong).toEqual([])
  })

  test('byte by byte', () => {
    const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
    expect(seen(read(single))).toEqual(expected)
  })
})

// A reader that loses its connection and comes back behind its place sees everything again from there.
describe.each(names.filter((name) => !name.startsWith('snapshot')))('%s, reconnected', (name) => {
  const bytes = new Uint8Array(readFileSync(resolve(folder, `${name}.sse`)))
  const frames = new SseParser().push(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes))
  const events = frames.flatMap((frame) => {
    const event = parseEvent(frame.data)
    return event ? [{ seq: Number(frame.id), event }] : []
  })

  test('at every event, from every earlier one', () => {
    const wanted = seen(events.reduce(reduce, initialView))
    for (let cut = 0; cut <= events.length; cut += 1) {
      for (let from = 0; from <= cut; from += 1) {
        const view = [...events.slice(0, cut), ...events.slice(from)].reduce(reduce, initialView)
        expect(seen(view)).toEqual(wanted)
      }
    }
  })
})

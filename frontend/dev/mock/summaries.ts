/** Mock of summaries: a part is made at each look, until all are. */
import type { FileSummary } from '../../src/shared/api/types.ts'
import type { MockFile } from './state.ts'

const made = new Map<string, FileSummary>()
const SAID = ['The hall was surveyed in 1998 after the roof had begun to sink.', 'Its beams are of oak and hold.', 'The cost of the repair is put at 48,000.']

export function summaryOf({ file }: MockFile, asked: boolean): FileSummary {
  const count = file.page_count ?? 0
  const old = made.get(file.id) ?? { ...none(count) }
  const next = asked && old.state !== 'ready' ? begun(count) : old.state === 'working' ? further(old) : old
  made.set(file.id, next)
  return next
}

const none = (count: number): FileSummary => ({
  state: 'none', model: null, waiting: false, outdated: false, steps: 0, steps_done: 0, sections: [], sentences: [], pages_covered: 0, page_count: count, error: null,
})

function begun(count: number): FileSummary {
  const sections = SAID.map((_, index) => ({
    title: `Part ${index + 1}`,
    first_page: Math.floor((index * count) / SAID.length) + 1,
    last_page: Math.max(1, Math.floor(((index + 1) * count) / SAID.length)),
    pages_given: 1,
    text: null,
  }))
  return { ...none(count), state: 'working', model: 'small', steps: SAID.length + 1, sections, pages_covered: count }
}

function further(old: FileSummary): FileSummary {
  const done = old.steps_done + 1
  const sections = old.sections.map((section, index) => (index < done ? { ...section, text: `${SAID[index]} [p. ${section.first_page}]` } : section))
  const sentences = SAID.map((text, index) => ({ text, pages: [old.sections[index]!.first_page], matched: index === 2 }))
  return { ...old, steps_done: done, sections, ...(done === old.steps ? { state: 'ready' as const, sentences } : {}) }
}

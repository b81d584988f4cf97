/** Incremental parser of text/event-stream: any cut between chunks gives the same frames. */
export interface Frame {
  id: string | null
  data: string
}

/** More than this without a blank line is no event of ours: a proxy's page, or a broken server. */
const MAX_FRAME = 8_000_000

export class SseParser {
  #rest = ''
  #data: string[] = []
  #size = 0
  #id: string | null = null
  #first = true
  #skipLf = false

  /** Feed decoded text; returns the frames that it completed. */
  push(chunk: string): Frame[] {
    let text = chunk
    if (this.#first && text !== '') {
      this.#first = false
      if (text.startsWith('\uFEFF')) text = text.slice(1)
    }
    // A CR at the end of the last chunk ended its line; an LF now belongs to it.
    if (this.#skipLf && text !== '') {
      this.#skipLf = false
      if (text.startsWith('\n')) text = text.slice(1)
    }
    const frames: Frame[] = []
    let from = 0
    for (let at = nextBreak(text, 0); at !== -1; at = nextBreak(text, from)) {
      this.#line(this.#rest + text.slice(from, at), frames)
      this.#rest = ''
      from = at + 1
      if (text[at] === '\r') {
        if (from === text.length) this.#skipLf = true
        else if (text[from] === '\n') from += 1
      }
    }
    this.#rest += text.slice(from)
    if (this.#rest.length + this.#size > MAX_FRAME) throw new Error('event stream frame is too large')
    return frames
  }

  #line(line: string, frames: Frame[]): void {
    if (line === '') {
      if (this.#data.length > 0) frames.push({ id: this.#id, data: this.#data.join('\n') })
      this.#data = []
      this.#size = 0
      this.#id = null
      return
    }
    const colon = line.indexOf(':')
    if (colon === 0) return // a comment: the heartbeat
    const field = colon === -1 ? line : line.slice(0, colon)
    const raw = colon === -1 ? '' : line.slice(colon + 1)
    const value = raw.startsWith(' ') ? raw.slice(1) : raw
    if (field === 'data') {
      this.#data.push(value)
      this.#size += value.length
    } else if (field === 'id' && !value.includes('\0')) this.#id = value
  }
}

function nextBreak(text: string, from: number): number {
  const lf = text.indexOf('\n', from)
  const cr = text.indexOf('\r', from)
  if (lf === -1) return cr
  return cr === -1 ? lf : Math.min(lf, cr)
}

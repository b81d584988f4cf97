/** A fenced block: language, copy button and, once the highlighter is there, colours. */
import { memo, useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { CopyButton } from './CopyButton'
import type { Span } from './highlighter'
import { languageOf } from './languages'
import { lazyModule } from './lazy'
import styles from './markdown.module.css'

const highlighter = lazyModule(() => import('./highlighter'))
/** Beyond it colours cost more than they tell. */
const MAX_HIGHLIGHT = 100_000
/** While code streams it is coloured again at most this often, and never for more than a tenth of the time. */
const LIVE_MS = 200

type Highlight = (code: string, language: string) => Span | null

export function CodeBlock({ code, info, open }: { code: string; info: string; open: boolean }) {
  const language = languageOf(info)
  const wanted = language.key !== null && code.length <= MAX_HIGHLIGHT
  const highlight = highlighter.use(wanted)?.highlight ?? null
  return (
    <figure className={styles.code} dir="ltr">
      <figcaption className={styles.codeHead}>
        <span>{language.label}</span>
        <CopyButton label="Copy code" text={() => code} />
      </figcaption>
      {/* Long lines scroll, so the keyboard must reach the box. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className={styles.pre} tabIndex={0} role="region" aria-label={`Code, ${language.label}`}>
        <code>
          {!highlight || !language.key ? (
            code
          ) : open ? (
            <LiveCode code={code} language={language.key} highlight={highlight} />
          ) : (
            <FinishedCode code={code} language={language.key} highlight={highlight} />
          )}
        </code>
      </pre>
    </figure>
  )
}

interface ColouredProps {
  code: string
  language: string
  highlight: Highlight
}

function FinishedCode({ code, language, highlight }: ColouredProps) {
  const span = useMemo(() => highlight(code, language), [code, language, highlight])
  return span ? <Spans span={span} /> : code
}

/** The part that was coloured last, and behind it in plain what has come since. */
function LiveCode({ code, language, highlight }: ColouredProps) {
  const [done, setDone] = useState<{ code: string; span: Span } | null>(null)
  const latest = useRef(code)
  const timing = useRef({ next: 0, timer: 0 })
  useEffect(() => {
    latest.current = code
    if (timing.current.timer) return
    const run = () => {
      const begin = performance.now()
      // Whole lines only: half a token often has another colour.
      const lines = latest.current.slice(0, latest.current.lastIndexOf('\n') + 1)
      const span = highlight(lines, language)
      if (span) setDone({ code: lines, span })
      const now = performance.now()
      timing.current = { next: now + Math.max(LIVE_MS, 10 * (now - begin)), timer: 0 }
    }
    timing.current.timer = window.setTimeout(run, Math.max(0, timing.current.next - performance.now()))
  }, [code, language, highlight])
  useEffect(() => {
    const current = timing
    return () => {
      clearTimeout(current.current.timer)
      current.current.timer = 0
    }
  }, [])
  if (!done || !code.startsWith(done.code)) return code
  return (
    <>
      <Spans span={done.span} />
      {code.slice(done.code.length)}
    </>
  )
}

const Spans = memo(function Spans({ span }: { span: Span }) {
  return <>{toElements(span)}</>
})

function toElements(span: Span): ReactNode[] {
  return span.children.map((child, index) => {
    if (typeof child === 'string') return child
    const children = toElements(child)
    return (
      // oxlint-disable-next-line react/no-array-index-key -- the tree is replaced as a whole
      <span key={index} className={child.scope ? (styles[`hl-${child.scope}`] ?? undefined) : undefined}>
        {children}
      </span>
    )
  })
}

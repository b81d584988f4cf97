/**
 * The Markdown of an answer. Safe for text that nobody has checked: no HTML, no foreign images, links of three kinds only.
 * Cheap for text that grows: see blocks.ts for how, heal.ts for why it does not flicker.
 */
import { memo, useMemo, useState } from 'react'
import type { Token } from 'marked'
import type { Citation } from '@/shared/api'
import { BlockStream } from './blocks'
import { CiteContext } from './CiteChip'
import styles from './markdown.module.css'
import { levelOf, outlinesOf, under, type Outline } from './outline'
import { Block } from './tokens'


export interface MarkdownProps {
  text: string
  /** More text is still to come: unfinished constructs are shown calmly, nothing heavy is done at each step. */
  streaming?: boolean
  citations?: readonly Citation[]
  onCite?: (citation: Citation) => void
}

export { copyText } from './copy'
export { CopyButton } from './CopyButton'
export { doubtOf } from './doubt'

const NONE: readonly Citation[] = []

export const Markdown = memo(function Markdown({ text, streaming = false, citations = NONE, onCite }: MarkdownProps) {
  // A cache, not state: the result depends on the text alone, so a discarded render does no harm.
  const [stream] = useState(() => new BlockStream())
  const { groups, linksKey } = useMemo(() => stream.update(text, streaming), [stream, text, streaming])
  const outlines = useMemo(() => outlinesOf(groups), [groups])
  const context = useMemo(() => ({ byNumber: new Map(citations.map((citation) => [citation.n, citation])), onCite }), [citations, onCite])
  return (
    <CiteContext value={context}>
      <div className={styles.markdown} data-streaming={streaming || undefined}>
        {groups.map((tokens, index) => (
          // oxlint-disable-next-line react/no-array-index-key -- groups are only ever appended or replaced in place
          <Group key={index} tokens={tokens} before={outlines[index] ?? ''} open={streaming && index === groups.length - 1} linksKey={linksKey} />
        ))}
      </div>
    </CiteContext>
  )
})

/** Blocks that no longer change skip this comparison as a whole. */
const Group = memo(function Group({ tokens, before, open, linksKey }: GroupProps) {
  let outline = before
  return tokens.map((token, index) => {
    outline = under(outline, token)
    // oxlint-disable-next-line react/no-array-index-key -- blocks are only ever appended or replaced in place
    return <Block key={index} token={token} section={levelOf(outline)} open={open && index === tokens.length - 1} linksKey={linksKey} />
  })
})

interface GroupProps {
  tokens: readonly Token[]
  before: Outline
  open: boolean
  linksKey: string
}

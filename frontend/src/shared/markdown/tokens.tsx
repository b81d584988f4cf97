/**
 * Tokens to elements. A closed list: a token of any other kind shows its source as text. Blocks are memoised by their raw
 * text, as the lexer makes new objects for the open end of a growing answer.
 */
import { createElement, memo, type ReactNode } from 'react'
import type { Token, Tokens } from 'marked'
import { IconImage } from '@/shared/ui/icons'
import { CiteChips } from './CiteChip'
import { CodeBlock } from './CodeBlock'
import { vouchedFor } from './doubt'
import { decodeEntities } from './entities'
import type { CiteToken, MathToken } from './lexer'
import styles from './markdown.module.css'
import { MathView } from './MathView'
import { hostOf, isOwnImage, safeHref } from './safe-url'

/** Deeper text is shown as its source: nobody writes it, and each level costs stack in the browser. */
const MAX_DEPTH = 20

interface BlockProps {
  token: Token
  depth?: number
  /** The level of the heading that this stands under, or is. */
  section: number
  /** Still being written. */
  open: boolean
  linksKey: string
}

export const Block = memo(
  function Block({ token, section, open, linksKey, depth = 0 }: BlockProps) {
    return depth > MAX_DEPTH ? token.raw : blockElement(token, { section, open, linksKey, depth: depth + 1 })
  },
  (old, next) =>
    old.open === next.open &&
    old.section === next.section &&
    (old.token === next.token ||
      (old.token.raw === next.token.raw && old.token.type === next.token.type && old.linksKey === next.linksKey && sameLoose(old.token, next.token))),
)

/** Whether items of a list stand apart depends on its other items. */
function sameLoose(a: Token, b: Token): boolean {
  return (a as Tokens.ListItem).loose === (b as Tokens.ListItem).loose
}

type Context = Omit<Required<BlockProps>, 'token'>

function Blocks({ tokens, open, ...rest }: { tokens: readonly Token[] } & Context) {
  const shown = tokens.filter((token) => token.type !== 'space' && token.type !== 'def')
  return shown.map((token, index) => (
    // oxlint-disable-next-line react/no-array-index-key -- blocks are only ever appended or replaced in place
    <Block key={index} token={token} open={open && index === shown.length - 1} {...rest} />
  ))
}

function blockElement(token: Token, context: Context): ReactNode {
  switch (token.type) {
    case 'paragraph':
      return <p dir="auto">{inline(token.tokens)}</p>
    case 'heading':
      return heading(token as Tokens.Heading, context)
    case 'list':
      return list(token as Tokens.List, context)
    case 'list_item':
      return item(token as Tokens.ListItem, context)
    case 'code':
      return <CodeBlock code={token['text'] as string} info={(token as Tokens.Code).lang ?? ''} open={context.open} />
    case 'blockquote':
      return (
        <blockquote dir="auto">
          <Blocks tokens={token.tokens ?? []} {...context} />
        </blockquote>
      )
    case 'table':
      return table(token as Tokens.Table)
    case 'hr':
      return <hr />
    case 'math':
      return <MathBlock token={token as unknown as MathToken} />
    case 'plain':
      return <p className={styles.plain}>{token.raw}</p>
    case 'text':
    case 'checkbox':
      return inline([token])
    default:
      return inlineElement(token, 0, 0, { text: token.raw, start: 0, end: token.raw.length }) || token.raw
  }
}

function MathBlock({ token }: { token: MathToken }) {
  return <MathView tex={token.text} display={token.display} pending={token.pending} />
}

/** Looks as deep as the model marked it; its level goes by its place. One in a quotation or a list stands below its section. */
function heading(token: Tokens.Heading, { section, depth }: Context): ReactNode {
  const level = depth === 1 ? section : Math.min(6, section + 1)
  return createElement(`h${level}`, { dir: 'auto', 'data-depth': token.depth }, inline(token.tokens))
}

function list(token: Tokens.List, { open, ...rest }: Context): ReactNode {
  const items = token.items.map((entry, index) => (
    // oxlint-disable-next-line react/no-array-index-key -- items are only ever appended
    <Block key={index} token={entry} open={open && index === token.items.length - 1} {...rest} />
  ))
  if (!token.ordered) return <ul dir="auto">{items}</ul>
  return (
    <ol dir="auto" start={token.start === '' ? 1 : token.start}>
      {items}
    </ol>
  )
}

function item(token: Tokens.ListItem, context: Context): ReactNode {
  return (
    <li data-task={token.task || undefined}>
      <Blocks tokens={token.tokens} {...context} />
    </li>
  )
}

function table(token: Tokens.Table): ReactNode {
  return (
    // Wide tables scroll inside this box, so the keyboard must reach it.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={styles.table} tabIndex={0} role="region" aria-label="Table">
      <table dir="auto">
        <thead>
          <Row cells={token.header} head />
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            // oxlint-disable-next-line react/no-array-index-key -- rows are only ever appended
            <Row key={index} cells={row} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

const sameCells = (a: readonly Tokens.TableCell[], b: readonly Tokens.TableCell[]): boolean =>
  a === b || (a.length === b.length && a.every((cell, index) => cell.text === b[index]?.text && cell.align === b[index]?.align))

const Row = memo(
  function Row({ cells, head }: { cells: readonly Tokens.TableCell[]; head?: boolean }) {
    return (
      <tr>
        {cells.map((cell, index) =>
          createElement(
            head ? 'th' : 'td',
            { key: index, 'data-align': cell.align ?? undefined, ...(head ? { scope: 'col' } : {}) },
            inline(cell.tokens),
          ),
        )}
      </tr>
    )
  },
  (old, next) => old.head === next.head && sameCells(old.cells, next.cells),
)

/** Where a token stands in the source of its paragraph; one inside another stands where the outermost does. */
interface Place {
  text: string
  start: number
  end: number
}

function inline(tokens: readonly Token[] | undefined, depth = 0, outer?: Place): ReactNode {
  const text = outer ? '' : (tokens ?? []).map((token) => token.raw).join('')
  let end = 0
  return tokens?.map((token, index) => {
    if (depth > MAX_DEPTH) return token.raw
    const start = end
    end += token.raw.length
    return inlineElement(token, index, depth + 1, outer ?? { text, start, end })
  })
}

function inlineElement(token: Token, key: number, depth: number, place: Place): ReactNode {
  switch (token.type) {
    case 'text':
      return token.tokens ? inline(token.tokens, depth) : decodeEntities(token['text'] as string)
    case 'escape':
      return token['text'] as string
    case 'strong':
      return <strong key={key}>{inline(token.tokens, depth, place)}</strong>
    case 'em':
      return <em key={key}>{inline(token.tokens, depth, place)}</em>
    case 'del':
      return <del key={key}>{inline(token.tokens, depth, place)}</del>
    case 'codespan':
      return (
        <code key={key} dir="ltr">
          {token['text'] as string}
        </code>
      )
    case 'br':
      return <br key={key} />
    case 'checkbox':
      return <input key={key} type="checkbox" checked={(token as Tokens.Checkbox).checked} disabled readOnly aria-label="Task" />
    case 'link':
      return link(token as Tokens.Link, key, depth, place)
    case 'image':
      return image(token as Tokens.Image, key)
    case 'math':
      return <MathBlock key={key} token={token as unknown as MathToken} />
    case 'cite':
      return <CiteChips key={key} numbers={(token as unknown as CiteToken).numbers} raw={token.raw} said={vouchedFor(place.text, place.start, place.end)} />
    default:
      return token.raw
  }
}

function link(token: Tokens.Link, key: number, depth: number, place: Place): ReactNode {
  const href = safeHref(token.autolink ? token.href : decodeEntities(token.href))
  const words = inline(token.tokens, depth, place)
  if (!href) return <span key={key}>{words}</span>
  return (
    <a key={key} href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
      {words}
    </a>
  )
}

/** Images of other hosts are never loaded: their address could carry a secret out. The person may open the link. */
function image(token: Tokens.Image, key: number): ReactNode {
  const address = decodeEntities(token.href)
  const words = decodeEntities(token.text)
  if (isOwnImage(address)) return <img key={key} src={address} alt={words} loading="lazy" className={styles.image} />
  const href = safeHref(address)
  if (!href) return <span key={key}>{words}</span>
  return (
    <a key={key} href={href} target="_blank" rel="noopener noreferrer nofollow" title={`Not loaded: ${href}`} className={styles.imageLink}>
      <IconImage aria-hidden />
      {words || 'Image'} <span className={styles.host}>({hostOf(href)})</span>
    </a>
  )
}

/**
 * A button with a menu: arrow keys, Home, End, first letters and Escape as the ARIA pattern says. The list is a popover in
 * the top layer with a fixed place, so that no scrolling parent cuts it off.
 */
import { useEffect, useId, useLayoutEffect, useRef, useState, type ReactElement, type ReactNode, type Ref } from 'react'
import { createPortal } from 'react-dom'
import styles from './Menu.module.css'

export interface MenuItem {
  key: string
  label: ReactNode
  /** For the first-letter search when the label is not text. */
  text?: string
  icon?: ReactNode
  /** Second line. */
  hint?: ReactNode
  danger?: boolean
  disabled?: boolean
  /** Turns the item into a choice of one; true for the chosen one. */
  checked?: boolean
  separator?: boolean
  onSelect: () => void
}

export interface MenuTriggerProps {
  ref: Ref<HTMLButtonElement>
  id: string
  'aria-haspopup': 'menu'
  'aria-expanded': boolean
  onClick: () => void
  onKeyDown: (event: React.KeyboardEvent) => void
}

export interface MenuProps {
  label: string
  items: readonly MenuItem[]
  renderTrigger: (props: MenuTriggerProps) => ReactElement
  align?: 'start' | 'end'
  /** `wide` suits items with a second line. */
  wide?: boolean
  onOpenChange?: (open: boolean) => void
}

export function Menu({ label, items, renderTrigger, align = 'start', wide, onOpenChange }: MenuProps) {
  const button = useRef<HTMLButtonElement>(null)
  const id = useId()
  const [start, setStart] = useState<'first' | 'last' | null>(null)
  const open = (from: 'first' | 'last') => {
    setStart(from)
    onOpenChange?.(true)
  }
  const close = (refocus: boolean) => {
    setStart(null)
    onOpenChange?.(false)
    if (refocus) button.current?.focus()
  }
  return (
    <>
      {renderTrigger({
        ref: button,
        id,
        'aria-haspopup': 'menu',
        'aria-expanded': start !== null,
        onClick: () => (start ? close(false) : open('first')),
        onKeyDown: (event) => {
          if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return
          event.preventDefault()
          open(event.key === 'ArrowDown' ? 'first' : 'last')
        },
      })}
      {start && <MenuList label={label} items={items} anchor={button} align={align} wide={wide ?? false} start={start} onClose={close} />}
    </>
  )
}

interface MenuListProps {
  label: string
  items: readonly MenuItem[]
  anchor: React.RefObject<HTMLButtonElement | null>
  align: 'start' | 'end'
  wide: boolean
  start: 'first' | 'last'
  onClose: (refocus: boolean) => void
}

function MenuList({ label, items, anchor, align, wide, start, onClose }: MenuListProps) {
  const list = useRef<HTMLDivElement>(null)
  const [place, setPlace] = useState<{ x: number; y: number } | null>(null)
  useLayoutEffect(() => {
    const node = list.current
    if (node && anchor.current) setPlace(placeOf(anchor.current.getBoundingClientRect(), node, align))
  }, [anchor, align])
  const placed = place !== null
  useEffect(() => {
    if (placed) (start === 'last' ? buttonsOf(list.current).at(-1) : (checkedOf(list.current) ?? buttonsOf(list.current)[0]))?.focus()
  }, [placed, start])
  useEffect(() => {
    const outside = (event: Event) => {
      const target = event.target as Node
      if (!list.current?.contains(target) && !anchor.current?.contains(target)) onClose(false)
    }
    const away = () => onClose(false)
    document.addEventListener('pointerdown', outside, true)
    window.addEventListener('resize', away)
    return () => {
      document.removeEventListener('pointerdown', outside, true)
      window.removeEventListener('resize', away)
    }
  }, [anchor, onClose])

  const onKeyDown = (event: React.KeyboardEvent) => {
    event.stopPropagation()
    if (event.key === 'Tab') return onClose(true)
    const target = nextFocus(event.key, buttonsOf(list.current))
    if (event.key === 'Escape') onClose(true)
    else if (target) target.focus()
    else return
    event.preventDefault()
  }
  // A modal dialog makes everything outside it inert, so the list must live inside the one that holds its button.
  const host = anchor.current?.closest('dialog') ?? document.body
  return createPortal(
    // oxlint-disable-next-line jsx-a11y/interactive-supports-focus -- the items take the focus, as the pattern says
    <div
      ref={list}
      role="menu"
      aria-label={label}
      className={styles.menu}
      data-wide={wide || undefined}
      style={place ? { insetBlockStart: place.y, left: place.x } : { visibility: 'hidden' }}
      onKeyDown={onKeyDown}
    >
      {items.map((item) => (
        <MenuRow key={item.key} item={item} onClose={onClose} />
      ))}
    </div>,
    host,
  )
}

function MenuRow({ item, onClose }: { item: MenuItem; onClose: (refocus: boolean) => void }) {
  const choice = item.checked !== undefined
  return (
    <>
      {item.separator && <hr className={styles.line} />}
      <button
        type="button"
        role={choice ? 'menuitemradio' : 'menuitem'}
        aria-checked={item.checked}
        tabIndex={-1}
        className={styles.item}
        data-danger={item.danger || undefined}
        data-text={item.text ?? (typeof item.label === 'string' ? item.label : '')}
        disabled={item.disabled}
        onClick={() => {
          onClose(true)
          item.onSelect()
        }}
      >
        {item.icon && <span className={styles.icon}>{item.icon}</span>}
        <span className={styles.words}>
          <span>{item.label}</span>
          {item.hint && <span className={styles.hint}>{item.hint}</span>}
        </span>
        {choice && (
          <span className={styles.check} aria-hidden>
            {item.checked ? '✓' : ''}
          </span>
        )}
      </button>
    </>
  )
}

function buttonsOf(list: HTMLElement | null): HTMLButtonElement[] {
  return [...(list?.querySelectorAll<HTMLButtonElement>('button:not(:disabled)') ?? [])]
}

/** Where a list of choices opens: at the chosen one. A menu that only contains some choices opens at its first item. */
function checkedOf(list: HTMLElement | null): HTMLButtonElement | null {
  if (list?.querySelector('[role="menuitem"]')) return null
  return list?.querySelector<HTMLButtonElement>('[aria-checked="true"]') ?? null
}

function nextFocus(key: string, all: HTMLButtonElement[]): HTMLButtonElement | undefined {
  const now = all.indexOf(document.activeElement as HTMLButtonElement)
  if (key === 'ArrowDown') return all[(now + 1) % all.length]
  if (key === 'ArrowUp') return all.at(now <= 0 ? -1 : now - 1)
  if (key === 'Home') return all[0]
  if (key === 'End') return all.at(-1)
  if (key.length !== 1) return undefined
  const starts = (item: HTMLButtonElement) => item.dataset['text']?.toLowerCase().startsWith(key.toLowerCase())
  return [...all.slice(now + 1), ...all.slice(0, now + 1)].find(starts)
}

/** Below the button, or above it when there is more room; always wholly inside the window. */
function placeOf(anchor: DOMRect, node: HTMLElement, align: 'start' | 'end'): { x: number; y: number } {
  const edge = 8
  const gap = 4
  const { offsetWidth: width, offsetHeight: height } = node
  const rtl = getComputedStyle(node).direction === 'rtl'
  const fromLeft = (align === 'start') !== rtl
  const x = fromLeft ? anchor.left : anchor.right - width
  const below = anchor.bottom + gap
  const y = below + height > innerHeight - edge && anchor.top - gap - height > edge ? anchor.top - gap - height : below
  const clamp = (value: number, size: number, room: number) => Math.max(edge, Math.min(value, room - size - edge))
  return { x: clamp(x, width, innerWidth), y: clamp(y, height, innerHeight) }
}

/**
 * Keeps the end of growing content in view for a reader who is at the end, and leaves everybody else where they are.
 * Only the reader's own scrolling decides; growth of the content never does.
 */
import { useCallback, useEffect, useRef, useState, type RefObject } from 'react'

const NEAR_END_PX = 64

export interface ScrollFollow {
  scroller: RefObject<HTMLDivElement | null>
  content: RefObject<HTMLDivElement | null>
  /** False once the reader has scrolled away from the end. */
  atEnd: boolean
  toEnd: (smooth?: boolean) => void
}

export function useScrollFollow(): ScrollFollow {
  const scroller = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const following = useRef(true)
  const lastTop = useRef(0)
  const [atEnd, setAtEnd] = useState(true)

  const toEnd = useCallback((smooth = false) => {
    following.current = true
    setAtEnd(true)
    const node = scroller.current
    node?.scrollTo({ top: node.scrollHeight, behavior: smooth ? 'smooth' : 'instant' })
  }, [])

  useEffect(() => {
    const node = scroller.current
    const inner = content.current
    if (!node || !inner) return
    following.current = true
    lastTop.current = 0
    const onScroll = () => {
      const away = node.scrollHeight - node.clientHeight - node.scrollTop
      // Upwards is the reader's wish; downwards may be ours, and counts as arriving when it is near the end.
      if (away < NEAR_END_PX) following.current = true
      else if (node.scrollTop < lastTop.current - 1) following.current = false
      lastTop.current = node.scrollTop
      setAtEnd(following.current || away < NEAR_END_PX)
    }
    const stick = () => {
      node.style.setProperty('--viewport', `${node.clientHeight}px`)
      if (following.current) node.scrollTop = node.scrollHeight
    }
    const observer = new ResizeObserver(stick)
    observer.observe(inner)
    observer.observe(node)
    node.addEventListener('scroll', onScroll, { passive: true })
    stick()
    return () => {
      observer.disconnect()
      node.removeEventListener('scroll', onScroll)
    }
  }, [])

  return { scroller, content, atEnd, toEnd }
}

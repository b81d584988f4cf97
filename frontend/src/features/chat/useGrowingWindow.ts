/**
 * Mounts a long list from its end: the last part at once, the rest in idle slices, so that no frame has to build it all.
 * Everything ends up in the page, where find-in-page and assistive software can reach it; what is off screen costs no
 * layout (content-visibility).
 */
import { startTransition, useEffect, useState } from 'react'

const FIRST = 6
const SLICE = 6

/** Index of the first item to mount; what is added at the end is always mounted. Give the component a key per list. */
export function useGrowingWindow(length: number): number {
  const [hidden, setHidden] = useState(() => Math.max(0, length - FIRST))
  // Another branch may be shorter; its last items are shown all the same.
  const first = Math.min(hidden, Math.max(0, length - FIRST))
  useEffect(() => {
    if (first === 0) return
    return whenIdle(() => startTransition(() => setHidden(Math.max(0, first - SLICE))))
  }, [first])
  return first
}

function whenIdle(work: () => void): () => void {
  if ('requestIdleCallback' in window) {
    const handle = requestIdleCallback(work, { timeout: 500 })
    return () => cancelIdleCallback(handle)
  }
  const timer = setTimeout(work, 40)
  return () => clearTimeout(timer)
}

/**
 * Mounts a long list from its end: the last part at once, the rest in idle slices, so that no frame has to build it all.
 * Everything ends up in the page, where find-in-page and assistive software can reach it; what is off screen costs no
 * layout (content-visibility).
 */
import { startTransition, useEffect, useState } from 'react'

const FIRST = 16
const SLICE = 8

/** Index of the first item to mount. Give the component a key per list. */
export function useGrowingWindow(length: number): number {
  const [shown, setShown] = useState(FIRST)
  useEffect(() => {
    if (shown >= length) return
    return whenIdle(() => startTransition(() => setShown((old) => old + SLICE)))
  }, [shown, length])
  return Math.max(0, length - shown)
}

function whenIdle(work: () => void): () => void {
  if ('requestIdleCallback' in window) {
    const handle = requestIdleCallback(work, { timeout: 500 })
    return () => cancelIdleCallback(handle)
  }
  const timer = setTimeout(work, 40)
  return () => clearTimeout(timer)
}

import { useLayoutEffect, useRef, useState } from 'react'
import { lazyModule } from './lazy'
import styles from './markdown.module.css'

const katex = lazyModule(() => import('./katex'))

/** A formula; its source until KaTeX is there, while it is being written, or when it is not valid. */
export function MathView({ tex, display, pending }: { tex: string; display: boolean; pending: boolean }) {
  const module = katex.use(!pending)
  const node = useRef<HTMLSpanElement>(null)
  const [drawn, setDrawn] = useState<string | null>(null)
  useLayoutEffect(() => {
    if (module && node.current && module.draw(tex, node.current, display)) setDrawn(tex)
  }, [module, tex, display])
  const shown = drawn === tex && !pending
  return (
    <span className={display ? styles.mathBlock : undefined} data-math={display ? 'display' : 'inline'} dir="ltr">
      {!shown && <code className={styles.mathSource}>{tex}</code>}
      <span ref={node} hidden={!shown} />
    </span>
  )
}

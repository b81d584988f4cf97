import { useEffect, useState } from 'react'
import { IconButton } from '@/shared/ui'
import { IconCheck, IconCopy } from '@/shared/ui/icons'
import { copyText } from './copy'

const SHOWN_MS = 2000

/** `text` is asked for when it is needed, so that a long text is not joined at every render. */
export function CopyButton({ text, label }: { text: () => string; label: string }) {
  const [state, setState] = useState<'idle' | 'done' | 'failed'>('idle')
  useEffect(() => {
    if (state === 'idle') return
    const timer = setTimeout(() => setState('idle'), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [state])
  const copy = async () => setState((await copyText(text())) ? 'done' : 'failed')
  return (
    <>
      <IconButton size="s" label={state === 'idle' ? label : state === 'done' ? 'Copied' : 'Copying was refused'} onClick={() => void copy()}>
        {state === 'done' ? <IconCheck /> : <IconCopy />}
      </IconButton>
      <span className="visually-hidden" role="status">
        {state === 'done' ? 'Copied' : state === 'failed' ? 'Copying was refused by the browser' : ''}
      </span>
    </>
  )
}

/** The one thing about models that a person should know now: loading and for how long, missing, or only a demonstration. */
import { useEffect, useState } from 'react'
import { isString, readStored, writeStored } from '@/shared/hooks'
import { Button, Dialog, IconButton, Notice, Spinner } from '@/shared/ui'
import { IconClose, IconInfo } from '@/shared/ui/icons'
import type { Model } from '@/shared/api'
import styles from './ModelBanner.module.css'
import { roughly, situationOf, type ModelChoice } from './models'

const DISMISSED = 'demo-notice'

export function ModelBanner({ choice }: { choice: ModelChoice }) {
  const situation = situationOf(choice)
  const [dismissed, setDismissed] = useState(() => readStored(DISMISSED, isString))
  const [help, setHelp] = useState(false)
  const content = () => {
    switch (situation.kind) {
      case 'loading':
        return <Loading key={situation.model.eta_s} model={situation.model} />
      case 'unavailable':
        return (
          <Notice tone="warn" live actions={<Button size="s" onClick={() => setHelp(true)}>What to do</Button>}>
            {situation.name ? `${situation.name} is not available right now.` : 'No model is available right now.'} Messages are kept
            and sent when one is ready.
          </Notice>
        )
      case 'demo':
        return dismissed === situation.model.id ? null : (
          <p className={styles.demo}>
            <IconInfo aria-hidden />
            <span>
              {situation.model.name} is a demonstration model and often wrong.{' '}
              <button type="button" className={styles.link} onClick={() => setHelp(true)}>
                Choose a better one
              </button>
            </span>
            <IconButton
              size="s"
              label="Dismiss"
              onClick={() => {
                writeStored(DISMISSED, situation.model.id)
                setDismissed(situation.model.id)
              }}
            >
              <IconClose />
            </IconButton>
          </p>
        )
      default:
        return null
    }
  }
  const shown = content()
  return (
    <>
      {shown && <div className={styles.banner}>{shown}</div>}
      {help && <ModelHelp onClose={() => setHelp(false)} />}
    </>
  )
}

/** Counts down between two polls, so that the estimate does not stand still. */
function Loading({ model }: { model: Model }) {
  const [left, setLeft] = useState(model.eta_s)
  useEffect(() => {
    const timer = setInterval(() => setLeft((old) => (old === null ? null : Math.max(0, old - 1))), 1000)
    return () => clearInterval(timer)
  }, [])
  return (
    <Notice icon={<Spinner />}>
      <strong className={styles.strong}>{model.name} is loading.</strong>{' '}
      {model.phase !== '' && <span className={styles.phase}>{sentence(model.phase)} </span>}
      <span aria-hidden>{left === null ? 'This takes a minute or two.' : left > 0 ? `Ready in ${roughly(left)}.` : 'Ready any moment.'}</span>{' '}
      You can write already; your message goes out as soon as it is ready.
    </Notice>
  )
}

/** The server names a phase in a few words: "converting weights". */
function sentence(phase: string): string {
  return `${phase.charAt(0).toUpperCase()}${phase.slice(1)}.`
}

/** Read by tests/unit/test_inference_manifest.py, which holds it against the manifest's rules. */
const ENTRY = `- id: qwen3-4b
  name: Qwen3 4B
  default: true
  weights: {hub: Qwen/Qwen3-4B-Instruct-2507}`

function ModelHelp({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Choosing a model" onClose={onClose} footer={<Button onClick={onClose}>Close</Button>}>
      <div className={styles.help}>
        <p>The operator of this installation decides which models run. They are listed in the model manifest.</p>
        <ol>
          <li>
            Open <code>inference/manifest.yaml</code>.
          </li>
          <li>
            Add an entry below <code>models:</code> with the weights of any model of the Hugging Face hub (or <code>path:</code> and a folder),
            take <code>default: true</code> from the one that is there, and restart with <code>make up</code>. A model of 7 billion parameters or
            more wants a GPU.
            <pre>{ENTRY}</pre>
          </li>
          <li>
            Or point Parley at a server that already runs one: <code>PARLEY_REPLICA_URLS=name=http://host:8000</code>.
          </li>
        </ol>
        <p>The new model then appears in the list below the question.</p>
      </div>
    </Dialog>
  )
}

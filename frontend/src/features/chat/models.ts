/** Which models there are, which one is chosen, and what a person should know about that. */
import { useEffect } from 'react'
import { request, useResource, type Model, type ModelList } from '@/shared/api'
import { createStore, isString, readStored, useStore, writeStored } from '@/shared/hooks'

export const AUTO = 'auto'
const READY_POLL_MS = 60_000
const LOADING_POLL_MS = 3_000

const chosenModel = createStore<string>(readStored('model', isString) ?? AUTO)

export function chooseModel(id: string): void {
  chosenModel.set(id)
  writeStored('model', id === AUTO ? null : id)
}

export interface ModelChoice {
  models: readonly Model[]
  /** What will be asked for: the person's choice as long as it exists, else `auto`. */
  chosen: string
  loaded: boolean
}

export function useModels(): ModelChoice {
  const { data, reload } = useResource<ModelList>('models', () => request('/api/models'))
  const chosen = useStore(chosenModel)
  const models = data?.results ?? NONE
  const settled = data !== undefined && models.some((model) => model.state === 'ready')
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && reload(), settled ? READY_POLL_MS : LOADING_POLL_MS)
    return () => clearInterval(timer)
  }, [settled, reload])
  const known = chosen === AUTO || !data || models.some((model) => model.id === chosen)
  return { models, chosen: known ? chosen : AUTO, loaded: data !== undefined }
}

const NONE: readonly Model[] = []

export type ModelSituation =
  | { kind: 'fine' }
  | { kind: 'loading'; model: Model }
  | { kind: 'unavailable'; name: string | null }
  | { kind: 'demo'; model: Model }

/** One fact at a time, the most important first. */
export function situationOf({ models, chosen, loaded }: ModelChoice): ModelSituation {
  if (!loaded) return { kind: 'fine' }
  const candidates = chosen === AUTO ? models : models.filter((model) => model.id === chosen)
  const ready = candidates.find((model) => model.state === 'ready')
  if (ready) return candidates.some((model) => model.state === 'ready' && !model.demo) ? { kind: 'fine' } : { kind: 'demo', model: ready }
  const loading = candidates
    .filter((model) => model.state === 'loading')
    .toSorted((a, b) => (a.eta_s ?? Infinity) - (b.eta_s ?? Infinity))[0]
  if (loading) return { kind: 'loading', model: loading }
  return { kind: 'unavailable', name: chosen === AUTO ? null : (candidates[0]?.name ?? chosen) }
}

/** "about 40 s", "about 2 min": rounded as far as an estimate deserves. */
export function roughly(seconds: number): string {
  if (seconds < 5) return 'a few seconds'
  if (seconds < 60) return `about ${Math.round(seconds / 5) * 5} s`
  return `about ${Math.round(seconds / 60)} min`
}

import { describeError, request, useResource, type Model, type ModelList } from '@/shared/api'
import { Notice, Skeleton } from '@/shared/ui'
import { IconExternal } from '@/shared/ui/icons'
import type { SettingsPageProps } from '.'
import styles from './settings.module.css'

export function About({ me, site }: SettingsPageProps) {
  const { data, error } = useResource<ModelList>('models', () => request('/api/models'))
  const demo = data?.results.some((model) => model.demo && model.state === 'ready') && !data.results.some((model) => !model.demo && model.state === 'ready')
  return (
    <>
      <dl className={styles.facts}>
        <div>
          <dt>Version</dt>
          <dd>
            {site.name} {site.version}
          </dd>
        </div>
        <div>
          <dt>Server</dt>
          <dd>{location.host}</dd>
        </div>
      </dl>
      <div className={styles.group}>
        <h3>Models</h3>
        {demo && (
          <Notice tone="warn">
            Answers come from a small demonstration model: it shows that everything works, but it knows little and errs often.
            {me.user.is_operator
              ? ' Name a better one in the model manifest (inference/manifest.yaml): any model of the Hugging Face hub, or a folder on this machine.'
              : ' The operator of this server can set up a better one.'}
          </Notice>
        )}
        {error !== null && error !== undefined && !data && <Notice tone="danger">{describeError(error)}</Notice>}
        {!data && !error && <Skeleton lines={[70]} />}
        <ul className={styles.models}>
          {data?.results.map((model) => (
            <li key={model.id}>
              <span className={styles.state} data-state={model.state}>
                {STATES[model.state]}
              </span>
              <div>
                <span className={styles.keyName}>{model.name}</span>
                <span>
                  {model.context_length.toLocaleString()} tokens of context; {replicas(model)}
                </span>
                {model.note && <span>{model.note}</span>}
              </div>
            </li>
          ))}
        </ul>
      </div>
      <div className={styles.group}>
        <h3>More</h3>
        <ul className={styles.links}>
          <li>
            <a href="/api/docs">
              API documentation
              <IconExternal aria-hidden />
            </a>
          </li>
          {me.user.is_operator && (
            <li>
              <a href="/admin/">
                Administration
                <IconExternal aria-hidden />
              </a>
            </li>
          )}
        </ul>
      </div>
    </>
  )
}

const STATES = { ready: 'Ready', loading: 'Loading', unavailable: 'Unavailable' } as const

function replicas({ replicas: { ready, total } }: Model): string {
  return total === 1 ? 'one replica' : `${ready} of ${total} replicas ready`
}

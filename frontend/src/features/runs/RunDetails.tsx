/** How an answer came about: where its time went, which model and replica gave it and why, and what it was sent. */
import { useState, type ReactNode } from 'react'
import { describeError, request, useResource, type Id, type RunContext, type RunDetail } from '@/shared/api'
import { Button, Dialog, Notice, Skeleton } from '@/shared/ui'
import { IconError } from '@/shared/ui/icons'
import { surveyText } from '@/shared/words'
import styles from './RunDetails.module.css'
import { duration, phasesOf, tokensPerSecond, type Phase } from './timing'

export default function RunDetails({ runId, onClose }: { runId: Id; onClose: () => void }) {
  const { data: run, error, loading, reload } = useResource<RunDetail>(`run:${runId}`, () => request(`/api/runs/${runId}`))
  return (
    <Dialog title="About this answer" variant="wide" onClose={onClose} className={styles.dialog ?? ''}>
      {run ? (
        <Details run={run} />
      ) : loading || !error ? (
        <Skeleton lines={[40, 90, 80, 90, 60]} />
      ) : (
        <Notice
          tone="danger"
          icon={<IconError aria-hidden />}
          actions={
            <Button size="s" onClick={reload}>
              Try again
            </Button>
          }
        >
          {describeError(error)}
        </Notice>
      )}
    </Dialog>
  )
}

function Details({ run }: { run: RunDetail }) {
  const phases = phasesOf(run)
  const speed = tokensPerSecond(run)
  return (
    <div className={styles.details}>
      <Section title="Time">
        {phases.length > 0 ? <Timeline phases={phases} /> : <p className={styles.quiet}>This answer never began.</p>}
      </Section>
      <Section title="Model">
        <dl className={styles.facts}>
          <Fact name="Model" value={run.model || '–'} />
          <Fact name="Asked for" value={run.model_requested} />
          <Fact name="Replica" value={run.replica || '–'} />
          <Fact name="Lane and tier" value={`${run.lane}, ${run.tier}`} />
          {run.attempt > 1 && <Fact name="Attempts" value={String(run.attempt)} />}
        </dl>
        {run.decision && (
          <ol className={styles.reasons} aria-label="Why">
            {run.decision.reasons.map((reason, index) => (
              // oxlint-disable-next-line react/no-array-index-key -- a decision does not change
              <li key={index}>{reason.text}</li>
            ))}
          </ol>
        )}
      </Section>
      <Section title="Tokens">
        <dl className={styles.facts}>
          <Fact name="Read" value={run.prompt_tokens.toLocaleString()} />
          <Fact name="of these from the cache" value={run.cached_tokens.toLocaleString()} />
          <Fact name="Written" value={run.completion_tokens.toLocaleString()} />
          <Fact name="Tokens a second" value={speed === null ? '–' : speed.toFixed(1)} />
        </dl>
      </Section>
      {run.reconstructed.length > 0 && (
        <Section title="Failovers">
          <ul className={styles.reasons}>
            {run.reconstructed.map((failover) => (
              <li key={`${failover.attempt}-${failover.at}-${failover.replica}`}>
                After {failover.at.toLocaleString()} characters the answer went on with {failover.replica || 'another replica'}
                {failover.other_weights && ', which has other weights'}.
              </li>
            ))}
          </ul>
        </Section>
      )}
      {run.error && (
        <Section title="Error">
          <p>{run.error.message}</p>
        </Section>
      )}
      <Sent runId={run.id} />
    </div>
  )
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={styles.section}>
      <h3>{title}</h3>
      {children}
    </section>
  )
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

function Timeline({ phases }: { phases: readonly Phase[] }) {
  const total = phases.reduce((sum, phase) => sum + phase.ms, 0)
  return (
    <>
      <div className={styles.bar} aria-hidden>
        {phases.map((phase) => (
          <span key={phase.kind} data-kind={phase.kind} style={{ flexGrow: Math.max(phase.ms, total / 200) }} />
        ))}
      </div>
      <dl className={styles.facts}>
        {phases.map((phase) => (
          <div key={phase.kind}>
            <dt>
              <i data-kind={phase.kind} aria-hidden />
              {phase.label}
            </dt>
            <dd>{duration(phase.ms)}</dd>
          </div>
        ))}
        <Fact name="In all" value={duration(total)} />
      </dl>
    </>
  )
}

/** The prompt, word for word; fetched when somebody wants to see it, since it can be long. */
function Sent({ runId }: { runId: Id }) {
  const [open, setOpen] = useState(false)
  const { data, error } = useResource<RunContext>(open ? `run-context:${runId}` : null, () => request(`/api/runs/${runId}/context`))
  return (
    <section className={styles.section}>
      <h3>
        <button type="button" className={styles.disclose} aria-expanded={open} onClick={() => setOpen(!open)}>
          What the model was sent
        </button>
      </h3>
      {open && !data && (error ? <p>{describeError(error)}</p> : <Skeleton lines={[90, 60]} />)}
      {open && data?.survey && <p>{surveyText(data.survey)}</p>}
      {open && data?.tables && <Lookups tables={data.tables} />}
      {open &&
        data?.messages.map((message, index) => (
          // oxlint-disable-next-line react/no-array-index-key -- a prompt does not change
          <div key={index} className={styles.sent}>
            <b>{String(message.role)}</b>
            <pre>{String(message.content)}</pre>
          </div>
        ))}
      {open && data?.messages.length === 0 && <p className={styles.quiet}>Nothing was sent yet.</p>}
    </section>
  )
}

/** What the model looked up in tables before it answered. */
function Lookups({ tables }: { tables: NonNullable<RunContext['tables']> }) {
  if (tables.lookups.length === 0) return <p>Nothing was looked up in tables. {tables.problem}</p>
  return (
    <ul className={styles.reasons} aria-label="Looked up in tables">
      {tables.lookups.map((lookup, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- a prompt does not change
        <li key={index}>
          {lookup.file_name}, {duration(lookup.ms)}: <code>{lookup.sql}</code> {lookup.error || `${lookup.rows.toLocaleString()} ${lookup.rows === 1 ? 'row' : 'rows'}`}
        </li>
      ))}
    </ul>
  )
}

import { useState, type FormEvent } from 'react'
import { ApiError, describeError, invalidate, request, useResource, type ApiKey, type Page } from '@/shared/api'
import { CopyButton } from '@/shared/markdown'
import { Button, ConfirmDialog, Dialog, Field, IconButton, Notice, Skeleton, toast } from '@/shared/ui'
import { IconDelete, IconKey, IconPlus } from '@/shared/ui/icons'
import styles from './settings.module.css'

const LIST = 'keys'

export function ApiKeys() {
  const { data, error, reload } = useResource<Page<ApiKey>>(LIST, () => request('/api/keys'))
  const [creating, setCreating] = useState(false)
  const [revoking, setRevoking] = useState<ApiKey | null>(null)
  return (
    <>
      <div className={styles.row}>
        <p>
          A key lets a program act as you. The OpenAI client libraries work with it: their base address is <code>{location.origin}/v1</code>.{' '}
          <a href="/api/docs">API documentation</a>
        </p>
        <Button variant="primary" icon={<IconPlus aria-hidden />} onClick={() => setCreating(true)}>
          New key
        </Button>
      </div>
      {error !== null && error !== undefined && !data && (
        <Notice tone="danger" live actions={<Button size="s" onClick={reload}>Try again</Button>}>
          {describeError(error)}
        </Notice>
      )}
      {!data && !error && <Skeleton lines={[100, 100]} />}
      {data?.results.length === 0 && <p className={styles.none}>There are no keys yet.</p>}
      {data && data.results.length > 0 && (
        <ul className={styles.keys} aria-label="API keys">
          {data.results.map((key) => (
            <KeyRow key={key.id} item={key} onRevoke={() => setRevoking(key)} />
          ))}
        </ul>
      )}
      {creating && <NewKey onClose={() => setCreating(false)} />}
      {revoking && <Revoke item={revoking} onClose={() => setRevoking(null)} />}
    </>
  )
}

function KeyRow({ item, onRevoke }: { item: ApiKey; onRevoke: () => void }) {
  return (
    <li>
      <IconKey aria-hidden />
      <div className={styles.keyWords}>
        <span className={styles.keyName}>{item.name}</span>
        <span>
          <code>{item.prefix}…</code> {usage(item)}
        </span>
        <span data-expired={isExpired(item) || undefined}>{expiry(item)}</span>
      </div>
      <IconButton size="s" label={`Revoke ${item.name}`} onClick={onRevoke}>
        <IconDelete />
      </IconButton>
    </li>
  )
}

const day = (iso: string): string => new Date(iso).toLocaleDateString(undefined, { day: 'numeric', month: 'short', year: 'numeric' })
const isExpired = (key: ApiKey): boolean => key.expires_at !== null && Date.parse(key.expires_at) <= Date.now()
const usage = (key: ApiKey): string => (key.last_used_at ? `last used ${day(key.last_used_at)}` : 'not used yet')

function expiry(key: ApiKey): string {
  if (!key.expires_at) return `Made ${day(key.created_at)}, does not expire`
  return isExpired(key) ? `Expired ${day(key.expires_at)}` : `Expires ${day(key.expires_at)}`
}

const LIFETIMES: readonly [days: number | null, label: string][] = [
  [7, '7 days'],
  [30, '30 days'],
  [90, '90 days'],
  [365, 'One year'],
  [null, 'Never'],
]

function NewKey({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('')
  const [days, setDays] = useState<number | null>(90)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<string | null>(null)
  const [made, setMade] = useState<ApiKey | null>(null)
  const create = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      const body = { name: name.trim(), ...(days === null ? {} : { expires_in_days: days }) }
      setMade(await request<ApiKey>('/api/keys', { method: 'POST', body }))
      invalidate(LIST)
    } catch (thrown) {
      setError((thrown instanceof ApiError && Object.values(thrown.fields)[0]?.[0]) || describeError(thrown))
    } finally {
      setBusy(false)
    }
  }
  if (made?.key) return <MadeKey item={made} secret={made.key} onClose={onClose} />
  return (
    <Dialog title="New API key" onClose={onClose}>
      <form className={styles.dialogForm} onSubmit={(event) => void create(event)}>
        <Field
          label="Name"
          required
          maxLength={120}
          placeholder="Nightly report"
          hint="What it is for, so that you know later which one to revoke."
          // The dialog was opened to type here.
          // oxlint-disable-next-line jsx-a11y/no-autofocus
          autoFocus
          value={name}
          error={error}
          onChange={(event) => setName(event.target.value)}
        />
        <fieldset className={styles.choices}>
          <legend>Expires after</legend>
          {LIFETIMES.map(([value, label]) => (
            <label key={label}>
              <input type="radio" name="expires" checked={days === value} onChange={() => setDays(value)} />
              <span>{label}</span>
            </label>
          ))}
        </fieldset>
        <div className={styles.actions}>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" busy={busy} disabled={name.trim() === ''}>
            Make the key
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function MadeKey({ item, secret, onClose }: { item: ApiKey; secret: string; onClose: () => void }) {
  return (
    <Dialog title={`Your key “${item.name}”`} onClose={onClose}>
      <div className={styles.dialogForm}>
        <Notice tone="warn">It is shown this once. Copy it now and keep it secret.</Notice>
        <div className={styles.secret}>
          <code>{secret}</code>
          <CopyButton label="Copy key" text={() => secret} />
        </div>
        <div className={styles.actions}>
          <Button variant="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

function Revoke({ item, onClose }: { item: ApiKey; onClose: () => void }) {
  const [busy, setBusy] = useState(false)
  const revoke = async () => {
    setBusy(true)
    try {
      await request(`/api/keys/${item.id}`, { method: 'DELETE' })
      toast(`${item.name} is revoked`)
    } catch (error) {
      // Revoked in another tab: that is what was wanted.
      if (!(error instanceof ApiError && error.status === 404)) {
        toast(describeError(error), { tone: 'error' })
        setBusy(false)
        return
      }
    }
    invalidate(LIST)
    onClose()
  }
  return (
    <ConfirmDialog title="Revoke this key?" action="Revoke" danger busy={busy} onConfirm={() => void revoke()} onClose={onClose}>
      <p>
        Programs that use <strong>{item.name}</strong> stop working at once. This cannot be undone.
      </p>
    </ConfirmDialog>
  )
}

/** Asks for the password of a protected file. It is sent once, kept by nobody, and gone from this page when it was right. */
import { useState, type FormEvent } from 'react'
import { describeError, request, type FileRecord } from '@/shared/api'
import { Button, PasswordField } from '@/shared/ui'
import styles from './files.module.css'
import { putRecord } from './records'

export function PasswordPrompt({ file }: { file: FileRecord }) {
  const [password, setPassword] = useState('')
  const [error, setError] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)

  const submit = async (event: FormEvent) => {
    event.preventDefault()
    const askedAt = Date.now()
    setBusy(true)
    setError(null)
    try {
      putRecord(await request<FileRecord>(`/api/files/${file.id}/password`, { method: 'POST', body: { password }, timeoutMs: 90_000 }), askedAt)
    } catch (reason) {
      setError(describeError(reason))
      setBusy(false)
    }
  }
  return (
    <form className={styles.password} onSubmit={(event) => void submit(event)} aria-label={`Password of ${file.name}`}>
      <PasswordField
        label="Password of the file"
        hint="It opens the file once and is not kept. What is read from the file is kept, until you delete it."
        error={error}
        value={password}
        autoComplete="off"
        maxLength={1000}
        onChange={(event) => setPassword(event.target.value)}
      />
      <Button type="submit" size="s" variant="primary" busy={busy} disabled={password === ''}>
        Open
      </Button>
    </form>
  )
}

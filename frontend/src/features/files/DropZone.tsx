/** Takes files dropped anywhere on the window, and shows that it would. */
import { useEffect, useRef, useState } from 'react'
import { IconUpload } from '@/shared/ui/icons'
import styles from './files.module.css'

export interface DropZoneProps {
  onFiles: (files: readonly File[]) => void
  title?: string
}

const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes('Files') ?? false

export function DropZone({ onFiles, title = 'Drop files to ask about them' }: DropZoneProps) {
  const [over, setOver] = useState(false)
  const latest = useRef(onFiles)
  useEffect(() => {
    latest.current = onFiles
  })
  useEffect(() => {
    // Entering a child leaves its parent, so only the balance tells when the pointer has left the window.
    let depth = 0
    const set = (value: number) => {
      depth = Math.max(0, value)
      setOver(depth > 0)
    }
    const listeners: [keyof WindowEventMap, (event: DragEvent) => void][] = [
      ['dragenter', (event) => hasFiles(event) && set(depth + 1)],
      ['dragleave', (event) => hasFiles(event) && set(depth - 1)],
      ['dragend', () => set(0)],
      ['dragover', (event) => hasFiles(event) && event.preventDefault()],
      [
        'drop',
        (event) => {
          if (!hasFiles(event)) return
          // Without this the browser would leave the page and open the file.
          event.preventDefault()
          set(0)
          if (document.querySelector('dialog[open]')) return
          const files = filesOf(event.dataTransfer)
          if (files.length > 0) latest.current(files)
        },
      ],
    ]
    for (const [type, listener] of listeners) window.addEventListener(type, listener as EventListener)
    return () => {
      for (const [type, listener] of listeners) window.removeEventListener(type, listener as EventListener)
    }
  }, [])
  if (!over) return null
  return (
    <div className={styles.drop}>
      <div className={styles.dropBox}>
        <IconUpload aria-hidden />
        <p className={styles.dropTitle}>{title}</p>
        <p>Documents, spreadsheets, mail, pictures, text, code or ZIP; up to 100 MB each</p>
      </div>
    </div>
  )
}

/** Folders are left out: a browser lists them as empty files. */
function filesOf(data: DataTransfer | null): File[] {
  if (!data) return []
  const items = [...data.items].filter((item) => item.kind === 'file')
  return items.flatMap((item) => {
    if (item.webkitGetAsEntry()?.isDirectory) return []
    const file = item.getAsFile()
    return file ? [file] : []
  })
}

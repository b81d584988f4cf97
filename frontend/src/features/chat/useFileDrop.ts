import { useRef, useState } from 'react'

export interface FileDrop {
  over: boolean
  handlers: Pick<React.DOMAttributes<HTMLElement>, 'onDragEnter' | 'onDragOver' | 'onDragLeave' | 'onDrop'>
}

/** Files dropped anywhere on an element. Text and links that are dragged are left to the browser. */
export function useFileDrop(onFiles: (files: File[]) => void): FileDrop {
  const depth = useRef(0)
  const [over, setOver] = useState(false)
  const hasFiles = (event: React.DragEvent) => event.dataTransfer.types.includes('Files')
  return {
    over,
    handlers: {
      onDragEnter: (event) => {
        if (!hasFiles(event)) return
        event.preventDefault()
        depth.current += 1
        setOver(true)
      },
      onDragOver: (event) => {
        if (hasFiles(event)) event.preventDefault()
      },
      onDragLeave: (event) => {
        if (!hasFiles(event)) return
        depth.current -= 1
        if (depth.current <= 0) setOver(false)
      },
      onDrop: (event) => {
        if (!hasFiles(event)) return
        event.preventDefault()
        depth.current = 0
        setOver(false)
        onFiles([...event.dataTransfer.files])
      },
    },
  }
}

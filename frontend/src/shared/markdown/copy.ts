/** Put text on the clipboard. The asynchronous interface exists only on https and localhost; a server in a home network has neither. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyBySelection(text)
  }
}

function copyBySelection(text: string): boolean {
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'visually-hidden'
  // Inside an open modal dialog everything else is inert and could not be selected.
  const host = document.querySelector('dialog:modal') ?? document.body
  const focused = document.activeElement
  host.append(field)
  field.select()
  const done = document.execCommand('copy')
  field.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return done
}

/** Says a sentence to assistive software without showing it. One live region for the whole page. */
let region: HTMLElement | null = null

export function announce(text: string): void {
  if (!region?.isConnected) {
    region = document.createElement('div')
    region.className = 'visually-hidden'
    region.setAttribute('aria-live', 'polite')
    region.setAttribute('role', 'log')
    document.body.append(region)
  }
  const line = document.createElement('p')
  line.textContent = text
  region.append(line)
  while (region.childElementCount > 3) region.firstElementChild?.remove()
}

/** What jsdom lacks and the pages use, in the smallest form that lets a test tell right from wrong. */
import { cleanup, configure } from '@testing-library/react'
import { afterEach } from 'vitest'

configure({ asyncUtilTimeout: 10_000 })

class NoObserver {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
  takeRecords(): [] {
    return []
  }
}

globalThis.ResizeObserver ??= NoObserver
globalThis.IntersectionObserver ??= NoObserver as unknown as typeof IntersectionObserver
window.matchMedia ??= (query: string) =>
  ({ matches: false, media: query, addEventListener: () => undefined, removeEventListener: () => undefined }) as unknown as MediaQueryList
Element.prototype.scrollTo ??= () => undefined
Element.prototype.scrollIntoView ??= () => undefined
HTMLDialogElement.prototype.showModal ??= function showModal(this: HTMLDialogElement) {
  this.open = true
}
HTMLDialogElement.prototype.close ??= function close(this: HTMLDialogElement) {
  this.open = false
}

afterEach(() => {
  cleanup()
  localStorage.clear()
})

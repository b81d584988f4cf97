/** Paths and links over the History API. Four routes need no library. */
import type { AnchorHTMLAttributes } from 'react'
import { createStore, useStore } from './store'

const pathStore = createStore(location.pathname)
window.addEventListener('popstate', () => pathStore.set(location.pathname))

export function navigate(path: string, { replace = false } = {}): void {
  if (path === location.pathname) return
  history[replace ? 'replaceState' : 'pushState'](null, '', path)
  pathStore.set(location.pathname)
}

export function usePath(): string {
  return useStore(pathStore)
}

export function currentPath(): string {
  return pathStore.get()
}

export interface LinkProps extends AnchorHTMLAttributes<HTMLAnchorElement> {
  href: string
}

/** An anchor that stays in the page for a plain click and is a real link for everything else. */
export function Link({ href, onClick, children, ...rest }: LinkProps) {
  return (
    <a
      {...rest}
      href={href}
      onClick={(event) => {
        onClick?.(event)
        const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
        if (event.defaultPrevented || !plain) return
        event.preventDefault()
        navigate(href)
      }}
    >
      {children}
    </a>
  )
}

/** Development only: a Vite plugin that speaks the server's contract from memory, so that pages can be seen alone. */
import type { Plugin } from 'vite'

export function mockBackend(): Plugin {
  return { name: 'parley-mock-backend' }
}

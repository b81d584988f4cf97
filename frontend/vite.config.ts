/** Build, dev server and unit tests of the web client. The production bundle is served by Django under /static/app/. */
import { fileURLToPath, URL } from 'node:url'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'
import type { Plugin, ProxyOptions } from 'vite'
import { mockBackend } from './dev/mock.ts'

const backend = process.env['PARLEY_BACKEND']

function toBackend(target: string): Record<string, ProxyOptions> {
  const http = ['/api', '/_allauth', '/storage', '/admin', '/static'].map((path) => [path, { target }] as const)
  return { ...Object.fromEntries(http), '/ws': { target, ws: true } }
}

/** KaTeX names three formats of each font; every browser that runs this page takes the first, and the others weigh 800 kB. */
const modernFontsOnly: Plugin = {
  name: 'parley-modern-fonts-only',
  enforce: 'pre',
  transform: (code, id) => (/katex.*\.css/.test(id) ? code.replaceAll(/,\s*url\([^)]+\.(?:woff|ttf)\)\s*format\("[^"]+"\)/g, '') : null),
}

export default defineConfig(({ command, mode }) => ({
  base: command === 'build' ? '/static/app/' : '/',
  plugins: [react(), modernFontsOnly, ...(command === 'serve' && mode !== 'test' && !backend ? [mockBackend()] : [])],
  resolve: { alias: { '@': fileURLToPath(new URL('./src', import.meta.url)) } },
  build: {
    target: 'es2022',
    manifest: true,
    outDir: 'dist',
    assetsInlineLimit: 0, // a strict CSP forbids data: URLs for scripts and fonts
    modulePreload: { polyfill: false },
  },
  server: {
    host: '127.0.0.1',
    port: 5173,
    ...(backend ? { proxy: toBackend(backend) } : {}),
  },
  test: {
    environment: 'jsdom',
    include: ['src/**/*.test.{ts,tsx}'],
    testTimeout: 30_000, // generous: machines under load are slow, and no test waits for time to pass
    setupFiles: ['./src/test-setup.ts'],
    css: { modules: { classNameStrategy: 'non-scoped' } },
  },
}))

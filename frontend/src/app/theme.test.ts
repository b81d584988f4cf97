import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { setTheme, themeStore } from '@/shared/hooks'

const css = readFileSync(resolve(import.meta.dirname, 'theme.css'), 'utf8')

/** Declarations of the block that a selector opens, as name -> value. */
function tokens(selector: string): Map<string, string> {
  const body = css.slice(css.indexOf(`${selector} {`)).split('{')[1]?.split('}')[0] ?? ''
  return new Map([...body.matchAll(/(--[\w-]+|color-scheme):\s*([^;]+);/g)].map(([, name, value]) => [name ?? '', value ?? '']))
}

const light = tokens(':root')
const dark = tokens(":root[data-theme='dark']")

function luminance(hex: string): number {
  const channels = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
  const [r = 0, g = 0, b = 0] = channels.map((c) => (c <= 0.039_28 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

function contrast(a: string, b: string): number {
  const [low = 0, high = 0] = [luminance(a), luminance(b)].toSorted((x, y) => x - y)
  return (high + 0.05) / (low + 0.05)
}

test('dark by choice and dark by system have the same values', () => {
  expect(dark).toEqual(tokens(":root:not([data-theme='light'])"))
  expect(dark.size).toBeGreaterThan(20)
})

const backgrounds = ['--bg', '--bg-side', '--surface', '--surface-2']
const pairs = [
  ...['--text', '--text-2', '--text-3', '--accent-text'].flatMap((ink) => backgrounds.map((paper) => [ink, paper, 4.5] as const)),
  ['--text-on-accent', '--accent', 4.5] as const,
  ['--text-on-accent', '--accent-hover', 4.5] as const,
  ['--danger', '--danger-soft', 4.5] as const,
  ['--warn', '--warn-soft', 4.5] as const,
  ['--success', '--success-soft', 4.5] as const,
  ['--accent-text', '--accent-soft', 4.5] as const,
  ['--text', '--mark', 4.5] as const,
  ...['--code-text', '--code-comment', '--code-keyword', '--code-string', '--code-number', '--code-title', '--code-attr'].map(
    (ink) => [ink, '--code-bg', 4.5] as const,
  ),
  ['--line-strong', '--surface', 3] as const,
  ['--focus', '--bg', 3] as const,
]

test.each([
  ['light', light],
  ['dark', dark],
])('%s: text and outlines can be read', (_name, theme) => {
  const poor = pairs.filter(([ink, paper, least]) => contrast(theme.get(ink) ?? '', theme.get(paper) ?? '') < least)
  expect(poor).toEqual([])
})

afterEach(() => setTheme('system'))

test('a choice is applied and kept as plain text; the system removes it', () => {
  setTheme('dark')
  expect(document.documentElement.dataset['theme']).toBe('dark')
  expect(localStorage.getItem('parley.theme')).toBe('dark')
  setTheme('system')
  expect(document.documentElement.dataset['theme']).toBeUndefined()
  expect(localStorage.getItem('parley.theme')).toBeNull()
  expect(themeStore.get()).toBe('system')
})

/** Gzip size of the JavaScript that the chat route loads first: the entry and all its static imports,
 * which hold the conversation page. Fails above the budget. */
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

const BUDGET = 200_000
const dist = new URL('../dist/', import.meta.url)
const manifest = JSON.parse(readFileSync(new URL('.vite/manifest.json', dist), 'utf8'))
const gzip = (file) => gzipSync(readFileSync(new URL(file, dist)), { level: 9 }).length

function reach(keys, followDynamic) {
  const seen = new Set()
  const queue = [...keys]
  for (let key = queue.pop(); key; key = queue.pop()) {
    if (seen.has(key)) continue
    seen.add(key)
    queue.push(...(manifest[key].imports ?? []), ...(followDynamic ? (manifest[key].dynamicImports ?? []) : []))
  }
  return seen
}

const entries = Object.keys(manifest).filter((key) => manifest[key].isEntry)
const first = reach(entries, false)
const all = reach(entries, true)
let total = 0
console.log('chat route, gzip bytes')
for (const key of first) {
  const bytes = gzip(manifest[key].file)
  total += bytes
  console.log(`  ${String(bytes).padStart(7)}  ${manifest[key].file}`)
  for (const css of manifest[key].css ?? []) console.log(`  ${String(gzip(css)).padStart(7)}  ${css} (style, not counted)`)
}
console.log(`  ${String(total).padStart(7)}  total of ${BUDGET}`)
console.log('loaded later')
for (const key of all) {
  if (!first.has(key)) console.log(`  ${String(gzip(manifest[key].file)).padStart(7)}  ${manifest[key].file}`)
}
if (total > BUDGET) {
  console.error(`over the budget by ${total - BUDGET} bytes`)
  process.exit(1)
}

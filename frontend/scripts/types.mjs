/** Writes src/generated/api.ts from src/generated/openapi.json (its schemas; calls are written by hand). --check compares. */
import { readFileSync, writeFileSync } from 'node:fs'
import openapiTS, { astToString } from 'openapi-typescript'

const folder = new URL('../src/generated/', import.meta.url)
const schema = JSON.parse(readFileSync(new URL('openapi.json', folder), 'utf8'))
const ast = await openapiTS({ ...schema, paths: {} }, { alphabetize: true, silent: true })
const text = `/** Made by scripts/types.mjs from the API's schema. Do not edit. */\n${astToString(ast)}`
const target = new URL('api.ts', folder)
if (!process.argv.includes('--check')) writeFileSync(target, text)
else if (readFileSync(target, 'utf8') !== text) {
  console.error('src/generated/api.ts is older than openapi.json: npm run types')
  process.exit(1)
}

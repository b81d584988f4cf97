/**
 * Code to coloured spans. Loaded when the first code block of a known language is on screen (about 35 kB compressed; shiki's
 * JavaScript engine with the same languages is several times that and sets inline styles, which the CSP forbids).
 * Gives a tree, not HTML, so that nothing has to be trusted.
 */
import hljs from 'highlight.js/lib/core'
import type { HighlightResult } from 'highlight.js'
import bash from 'highlight.js/lib/languages/bash'
import c from 'highlight.js/lib/languages/c'
import cpp from 'highlight.js/lib/languages/cpp'
import csharp from 'highlight.js/lib/languages/csharp'
import css from 'highlight.js/lib/languages/css'
import diff from 'highlight.js/lib/languages/diff'
import dockerfile from 'highlight.js/lib/languages/dockerfile'
import go from 'highlight.js/lib/languages/go'
import ini from 'highlight.js/lib/languages/ini'
import java from 'highlight.js/lib/languages/java'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import kotlin from 'highlight.js/lib/languages/kotlin'
import makefile from 'highlight.js/lib/languages/makefile'
import markdown from 'highlight.js/lib/languages/markdown'
import php from 'highlight.js/lib/languages/php'
import python from 'highlight.js/lib/languages/python'
import r from 'highlight.js/lib/languages/r'
import ruby from 'highlight.js/lib/languages/ruby'
import rust from 'highlight.js/lib/languages/rust'
import shell from 'highlight.js/lib/languages/shell'
import sql from 'highlight.js/lib/languages/sql'
import swift from 'highlight.js/lib/languages/swift'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'

const LANGUAGES = {
  bash, c, cpp, csharp, css, diff, dockerfile, go, ini, java, javascript, json, kotlin, makefile, markdown, php, python, r,
  ruby, rust, shell, sql, swift, typescript, xml, yaml,
}
for (const [name, definition] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, definition)

export interface Span {
  /** A class name, or null for a node that only groups. */
  scope: string | null
  children: (Span | string)[]
}

interface EmitterNode {
  scope?: string
  children: (EmitterNode | string)[]
}

function toSpan(node: EmitterNode): Span {
  const scope = node.scope && !node.scope.startsWith('language:') ? (node.scope.split('.')[0] ?? null) : null
  return { scope, children: node.children.map((child) => (typeof child === 'string' ? child : toSpan(child))) }
}

/** Null when the language is not known or the code defeats its grammar. */
export function highlight(code: string, language: string): Span | null {
  if (!hljs.getLanguage(language)) return null
  // The tree is there but not in the types; highlighter.test.ts notices if an update takes it away.
  const result = hljs.highlight(code, { language, ignoreIllegals: true }) as HighlightResult & { _emitter: { rootNode?: EmitterNode } }
  const { _emitter: emitter } = result
  const root = emitter.rootNode
  return root && !result.errorRaised ? toSpan(root) : null
}

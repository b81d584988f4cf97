/** Names of code languages: what models write after a fence -> [key of the highlighter, label for people]. Small, so not lazy. */
const LABELS: Readonly<Record<string, string>> = {
  bash: 'Bash', c: 'C', cpp: 'C++', csharp: 'C#', css: 'CSS', diff: 'Diff', dockerfile: 'Dockerfile', go: 'Go', ini: 'INI',
  java: 'Java', javascript: 'JavaScript', json: 'JSON', kotlin: 'Kotlin', makefile: 'Makefile', markdown: 'Markdown', php: 'PHP',
  python: 'Python', r: 'R', ruby: 'Ruby', rust: 'Rust', shell: 'Shell session', sql: 'SQL', swift: 'Swift',
  typescript: 'TypeScript', xml: 'XML', yaml: 'YAML',
}

const ALIASES: Readonly<Record<string, readonly [key: string, label?: string]>> = {
  sh: ['bash', 'Shell'], zsh: ['bash', 'Zsh'], console: ['shell', 'Console'], 'c++': ['cpp'], h: ['c'], hpp: ['cpp'], 'c#': ['csharp'],
  cs: ['csharp'], scss: ['css', 'SCSS'], patch: ['diff'], docker: ['dockerfile'], golang: ['go'], toml: ['ini', 'TOML'],
  conf: ['ini', 'Config'], env: ['ini', 'Env'], properties: ['ini', 'Properties'], js: ['javascript'], jsx: ['javascript', 'JSX'],
  mjs: ['javascript'], cjs: ['javascript'], json5: ['json', 'JSON5'], jsonc: ['json'], jsonl: ['json', 'JSON Lines'], kt: ['kotlin'],
  make: ['makefile'], md: ['markdown'], py: ['python'], python3: ['python'], pycon: ['python', 'Python session'], rb: ['ruby'],
  rs: ['rust'], shellsession: ['shell'], postgresql: ['sql', 'PostgreSQL'], mysql: ['sql', 'MySQL'], sqlite: ['sql', 'SQLite'],
  ts: ['typescript'], tsx: ['typescript', 'TSX'], html: ['xml', 'HTML'], svg: ['xml', 'SVG'], vue: ['xml', 'Vue'], yml: ['yaml'],
}

const UNKNOWN = new Set(['', 'text', 'txt', 'plain', 'plaintext', 'none', 'output'])

export interface Language {
  /** Key for the highlighter, null when it has none. */
  key: string | null
  label: string
}

/** `info` is everything after the fence: "python title=x", "{.python}", "ts". */
export function languageOf(info: string): Language {
  const name = (/^[{.\s]*([\w+#.-]{1,30})/.exec(info)?.[1] ?? '').toLowerCase()
  if (UNKNOWN.has(name)) return { key: null, label: 'Text' }
  const label = Object.hasOwn(LABELS, name) ? LABELS[name] : undefined
  if (label) return { key: name, label }
  const alias = Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined
  if (alias) return { key: alias[0], label: alias[1] ?? LABELS[alias[0]] ?? alias[0] }
  return { key: null, label: name }
}

/** What may be uploaded, checked before anything is sent. The server checks again; these figures mirror its settings. */
export const MAX_BYTES = 100 * 1024 * 1024
export const MAX_PER_MESSAGE = 20
/** Program code and data in text form. */
const CODE_ENDINGS =
  '.py .pyi .js .mjs .cjs .jsx .ts .tsx .java .kt .kts .scala .groovy .c .h .cc .cpp .cxx .hh .hpp .cs .go .rs .rb .php .pl .pm .lua .r .jl .swift .m .mm .dart .ex .exs .erl .hs .ml .clj ' +
  '.lisp .el .vim .sh .bash .zsh .fish .ps1 .bat .sql .css .scss .less .vue .svelte .proto .graphql .tf .gradle .cmake .mk .tex .bib .json .jsonl .ndjson .geojson .ipynb .xml .xsd .xsl .yaml .yml .toml .ini .cfg .conf .properties .env .diff .patch'
export const ENDINGS: readonly string[] = [
  '.pdf', '.docx', '.docm', '.dotx', '.dotm', '.pptx', '.pptm', '.ppsx', '.ppsm', '.potx', '.potm', '.xlsx', '.xlsm',
  '.xltx', '.xltm', '.xlsb', '.xls', '.ods', '.csv', '.tsv', '.html', '.htm', '.xhtml', '.svg', '.eml', '.emlx',
  '.mbox', '.mht', '.mhtml', '.msg', '.doc', '.ppt', '.rtf', '.epub', '.odt', '.odp', '.zip', '.tar', '.tgz', '.gz',
  '.bz2', '.xz', '.txt', '.text', '.log', '.rst', '.adoc', '.org', '.srt', '.vtt', '.ics', '.vcf', '.md', '.markdown',
  '.png', '.jpg', '.jpeg', '.tif', '.tiff', '.webp', '.heic', '.heif', '.gif', '.bmp',
  ...CODE_ENDINGS.split(' '),
]
/** For the file chooser. Types as well as endings, because phones know only types. */
export const ACCEPT = [
  ...ENDINGS,
  'application/epub+zip', 'application/msword', 'application/pdf', 'application/rtf', 'application/vnd.ms-excel',
  'application/vnd.ms-excel.sheet.binary.macroenabled.12', 'application/vnd.ms-excel.sheet.macroenabled.12',
  'application/vnd.ms-outlook', 'application/vnd.ms-powerpoint',
  'application/vnd.ms-powerpoint.presentation.macroenabled.12', 'application/vnd.ms-word.document.macroenabled.12',
  'application/vnd.oasis.opendocument.presentation', 'application/vnd.oasis.opendocument.spreadsheet',
  'application/vnd.oasis.opendocument.text',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  'application/vnd.openxmlformats-officedocument.presentationml.slideshow',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.template', 'application/xhtml+xml',
  'application/zip', 'image/bmp', 'image/gif', 'image/heic', 'image/heif', 'image/jpeg', 'image/png', 'image/tiff',
  'image/webp',
  'message/rfc822', 'text/csv', 'text/html', 'text/markdown', 'text/plain', 'text/tab-separated-values',
].join(',')

/** Why this file cannot be uploaded, or null. */
export function refusalOf(file: { name: string; size: number }): string | null {
  const ending = /\.[^.]+$/.exec(file.name.toLowerCase())?.[0] ?? ''
  if (!ENDINGS.includes(ending)) {
    return `${ending ? `Files ending in ${ending}` : 'Files without an ending'} cannot be read. Documents, spreadsheets, mail, pictures, text, code and ZIP archives can.`
  }
  if (file.size === 0) return 'The file is empty.'
  if (file.size > MAX_BYTES) return `The file has ${formatBytes(file.size)}; up to ${formatBytes(MAX_BYTES)} are possible.`
  return null
}

/** "214 kB", "3.4 MB", "10.7 GB": decimal units, as file managers show them. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  if (bytes < 999_500) return `${Math.round(bytes / 1000)} kB`
  if (bytes < 1e7) return `${(Math.floor(bytes / 1e5) / 10).toFixed(1)} MB`
  return bytes < 1e9 ? `${Math.floor(bytes / 1e6)} MB` : `${Math.floor(bytes / 1e8) / 10} GB`
}

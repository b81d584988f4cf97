/** Text with the searched words marked. */
export function Marked({ text, query }: { text: string; query: string }) {
  const needle = query.trim().toLowerCase()
  if (needle === '') return text
  const parts: React.ReactNode[] = []
  const lower = text.toLowerCase()
  // A few letters change their length in lower case; then offsets do not fit and the plain title is shown.
  if (lower.length !== text.length) return text
  let from = 0
  for (let at = lower.indexOf(needle); at !== -1; at = lower.indexOf(needle, from)) {
    parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + needle.length)}</mark>)
    from = at + needle.length
  }
  return [...parts, text.slice(from)]
}

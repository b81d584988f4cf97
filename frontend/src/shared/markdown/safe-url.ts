/** Which addresses from a model's text may become links or images. Everything else stays text. */
const SCHEMES = new Set(['http:', 'https:', 'mailto:'])
const OWN_IMAGE = /^\/api\/files\/[0-9a-f-]{36}\/(?:content|pages\/\d{1,4}\/image(?:\?width=\d{1,4})?)$/

/** The address as the browser will read it, or null. Only absolute ones: a relative link of a model means nothing here. */
export function safeHref(href: string): string | null {
  let url: URL
  try {
    url = new URL(href)
  } catch {
    return null
  }
  if (!SCHEMES.has(url.protocol)) return null
  // "https://your-bank.example@evil.example" is made to be misread.
  if (url.protocol !== 'mailto:' && (url.username || url.password)) return null
  return url.href
}

/** Loading an image tells its host whatever the address carries, so only this server's own files are loaded. */
export function isOwnImage(href: string): boolean {
  return OWN_IMAGE.test(href)
}

export function hostOf(href: string): string {
  try {
    return new URL(href).host
  } catch {
    return ''
  }
}

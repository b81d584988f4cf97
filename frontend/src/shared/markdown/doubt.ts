import type { Citation } from '@/shared/api'

/** What an answer says with a source that the source does not contain, as a sentence; empty when all of it was found. */
export function doubtOf({ unsupported = [] }: Pick<Citation, 'unsupported'>): string {
  return unsupported.length > 0 ? `Not found in this source: ${unsupported.join(', ')}` : ''
}

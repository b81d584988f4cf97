/** What is said beside an answer of how it came about. Pure. */
import type { RunNotice, UnreadyFile } from '@/shared/api'
import { pageRange, surveyText } from '@/shared/words'

/** Files that are named in one notice. */
const MAX_NAMED = 5

export function noticeText(notice: RunNotice): string {
  switch (notice.kind) {
    case 'reconstructed':
      return notice.other_weights
        ? 'A replica was lost while writing. The answer was continued by another version of the model, as no other was there.'
        : 'A replica was lost while writing. The answer was continued on another replica.'
    case 'keyword_only':
      return 'Files were searched by keywords only. Search by meaning is not ready yet.'
    case 'keyword_away':
      return 'Files were searched by keywords only. What searches by meaning does not answer at present.'
    case 'keyword_partly':
      return 'Some passages were searched by keywords only. Search by meaning is being renewed for them.'
    case 'unready':
      return firstOf(notice.files.map(unreadyText), 'searched in full')
    case 'left_out':
      return firstOf(notice.left_out.map((file) => file.sentences.join(' ')), 'read whole')
    case 'survey':
      return surveyText(notice.survey)
    case 'escalated':
      return `${notice.from_model} did not manage (${notice.why}). ${notice.to_model} answered instead.`
    default:
      return ''
  }
}

/** Of many sentences, one a file, the first. */
function firstOf(sentences: string[], what: string): string {
  const more = sentences.length - MAX_NAMED
  return [...sentences.slice(0, MAX_NAMED), ...(more > 0 ? [`${more} more ${more > 1 ? 'files were' : 'file was'} not ${what}.`] : [])].join(' ')
}

function unreadyText({ file_name: name, pages_pending: pending, pages_failed: failed, state, reason }: UnreadyFile): string {
  const parts = []
  if (pending.length > 0) parts.push(`${pageRange(pending)} of ${name} ${pending.length > 1 ? 'were' : 'was'} not read yet`)
  if (failed.length > 0) parts.push(`${pageRange(failed)} of ${name} could not be read`)
  if (parts.length === 0) {
    if (state === 'needs_password') return `${name} was not opened: it needs its password.`
    if (state === 'failed') return `${name} could not be read${reason ? `: ${reason}` : '.'}`
    // Nothing is known of a file yet whose reading has just begun, not even how many pages it has.
    return `${name} was not read yet.`
  }
  const sentence = `${parts.join('; ')}.`
  return sentence.charAt(0).toUpperCase() + sentence.slice(1)
}

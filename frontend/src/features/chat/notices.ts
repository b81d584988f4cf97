/** What is said beside an answer of how it came about. Pure. */
import type { RunNotice, UnreadyFile } from '@/shared/api'
import { pageRange, surveyText } from '@/shared/words'

export function noticeText(notice: RunNotice): string {
  switch (notice.kind) {
    case 'reconstructed':
      return notice.other_weights
        ? 'A replica was lost while writing. The answer was continued by another version of the model, as no other was there.'
        : 'A replica was lost while writing. The answer was continued on another replica.'
    case 'keyword_only':
      return 'Files were searched by keywords only. Search by meaning is not ready yet.'
    case 'keyword_partly':
      return 'Some passages were searched by keywords only. Search by meaning is being renewed for them.'
    case 'unready':
      return notice.files.map(unreadyText).join(' ')
    case 'survey':
      return surveyText(notice.survey)
    case 'escalated':
      return `${notice.from_model} did not manage (${notice.why}). ${notice.to_model} answered instead.`
    default:
      return ''
  }
}

function unreadyText({ file_name: name, pages_pending: pending, pages_failed: failed }: UnreadyFile): string {
  const parts = []
  if (pending.length > 0) parts.push(`${pageRange(pending)} of ${name} ${pending.length > 1 ? 'were' : 'was'} not read yet`)
  if (failed.length > 0) parts.push(`${pageRange(failed)} of ${name} could not be read`)
  // Nothing is known of a file yet whose reading has just begun, not even how many pages it has.
  if (parts.length === 0) return `${name} was not read yet.`
  const sentence = `${parts.join('; ')}.`
  return sentence.charAt(0).toUpperCase() + sentence.slice(1)
}

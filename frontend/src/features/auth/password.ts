/** What a new password must be, told while it is typed. The server decides; this mirrors its rules to save a round trip. */
export const MIN_LENGTH = 10

export function passwordHint(password: string, email: string): string {
  const missing = MIN_LENGTH - password.length
  if (password.length === 0) return `At least ${MIN_LENGTH} characters. Three or four words are easy to remember.`
  if (missing > 0) return `${missing} more character${missing === 1 ? '' : 's'}.`
  return resembles(password, email) ? 'This is too close to your email address.' : 'Long enough.'
}

function resembles(password: string, email: string): boolean {
  const word = password.toLowerCase()
  const parts = email.toLowerCase().split('@')
  return parts.some((part) => part.length > 3 && (word === part || word.replaceAll(/\d/g, '') === part)) || word === email.toLowerCase()
}

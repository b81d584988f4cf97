import styles from './ChatPage.module.css'

const IDEAS = [
  { title: 'Ask about a document', text: 'What are the main points of the attached document, and on which pages are they?' },
  { title: 'Explain an idea', text: 'Explain eventual consistency to me with an example from daily life.' },
  { title: 'Write a first draft', text: 'Draft a short, friendly message that moves our meeting to Thursday.' },
  { title: 'Work on code', text: 'Write a Python function that merges overlapping intervals, with tests.' },
] as const

/** What a person sees before the first question. */
export function EmptyState({ name, onIdea }: { name: string; onIdea: (text: string) => void }) {
  const first = name.trim().split(/\s+/)[0]
  return (
    <div className={styles.hero}>
      <h1 className={styles.greeting}>{first ? `What is on your mind, ${first}?` : 'What is on your mind?'}</h1>
      <ul className={styles.ideas} aria-label="Ideas to start with">
        {IDEAS.map((idea) => (
          <li key={idea.title}>
            <button type="button" className={styles.idea} onClick={() => onIdea(idea.text)}>
              <span className={styles.ideaTitle}>{idea.title}</span>
              <span className={styles.ideaText}>{idea.text}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  )
}

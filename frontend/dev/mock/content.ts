/** Texts that the mock server answers with: every construct that a page must show well. */
export const ANSWERS = {
  short: 'Yes. Start small: write down what must hold, then the simplest thing that could break it.',
  markdown: `Consistency is a promise about **what a reader may see**, not about speed.

## Three useful levels

1. **Linearizable**: every read sees the latest write.
2. **Causal**: you never see an answer before its question.
3. **Eventual**: replicas agree once writes stop.

> A system is eventually consistent when nobody can say *when*.

For most products causal is enough. The cost of the strongest level is a round trip to a quorum, so about \`2 × RTT\` more at p99. In symbols, with $n$ replicas and a quorum of $q$:

$$
q_r + q_w > n
$$

- Reads from a follower are cheap and stale.
- Reads from the leader are fresh and **one place that fails**.

See [the overview](https://example.org/consistency) for more.`,
  code: `Here is the comparison:

| level | reads see | cost | typical use |
|---|---|---:|---|
| linearizable | the latest write | 2 RTT | money, locks |
| causal | your own writes, in order | 1 RTT | conversations |
| eventual | something older | 0 RTT | counters, caches |

And the smallest example that shows the difference:

\`\`\`python
from dataclasses import dataclass

@dataclass(frozen=True)
class Reading:
    """What one replica answered."""
    value: int
    version: int

def newest(readings: list[Reading]) -> Reading:
    # A quorum of readings contains the latest acknowledged write.
    return max(readings, key=lambda reading: reading.version)

print(newest([Reading(1, 7), Reading(2, 9)]))
\`\`\`

Run it twice: the second answer never goes back in time.`,
  cite: `The hall was built in 1871 and **cedar beams carry its roof** [1]. The east wing came later: its drawings were only found as scans, and the surveyor dates them to 1904 [2]. Neither document says who paid for it.`,
  long: '',
}

const SENTENCES = [
  'A queue that is never full is a queue that was never needed.',
  'Write the failure down first, then the code that survives it.',
  'The reader is the only judge of whether a page is fast.',
  'Every cache is a promise that somebody must keep.',
  'Names are the cheapest form of documentation.',
  'Measure twice, then once more under load.',
]

ANSWERS.long = Array.from({ length: 24 }, (_, part) => {
  const lines = Array.from({ length: 5 }, (_unused, line) => SENTENCES[(part + line) % SENTENCES.length])
  return `### Part ${part + 1}\n\n${lines.join(' ')}\n\n- ${SENTENCES[part % 6]}\n- ${SENTENCES[(part + 2) % 6]}`
}).join('\n\n')

export const LONG_TALK = [ANSWERS.short, ANSWERS.markdown, SENTENCES.join(' '), ANSWERS.code, SENTENCES.join('\n\n')]

export const PAGE_TEXT = `2 Structure

The hall was built in 1871 on the foundations of an older barn. Cedar beams carry the roof of the hall; each of them spans eleven metres. The floor was relaid twice.

The east wing was added in 1904. Its drawings survive as scans.`

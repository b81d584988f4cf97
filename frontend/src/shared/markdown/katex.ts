/** KaTeX with its style sheet and fonts, all from this server. Loaded with the first formula. */
import 'katex/dist/katex.min.css'
import { render } from 'katex'

/**
 * Draw into `node` through the DOM, not as an HTML string: KaTeX sets sizes as styles, which a strict CSP allows from code
 * but not in markup. `trust` off: no links, classes or images from a formula. False when the formula is not valid.
 */
export function draw(tex: string, node: HTMLElement, displayMode: boolean): boolean {
  try {
    render(tex, node, { displayMode, throwOnError: true, trust: false, strict: 'ignore', maxExpand: 300, maxSize: 20 })
    return true
  } catch {
    node.replaceChildren()
    return false
  }
}

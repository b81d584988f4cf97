/**
 * A person's story against a running page (mock or real): reload, lost network, second tab, message sent offline.
 * node dev/story.mjs URL        exits 1 when something was lost or doubled
 */
import { launch } from './browser.mjs'

const [url = 'http://127.0.0.1:5173'] = process.argv.slice(2)
const browser = await launch()
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
const page = await context.newPage()
const problems = []
page.on('pageerror', (error) => problems.push(`page error: ${error}`))
page.on('console', (message) => /Content Security|Refused to/.test(message.text()) && problems.push(message.text()))

const composer = (at = page) => at.getByRole('textbox', { name: 'Your question' })
const ask = async (text, at = page) => {
  await composer(at).fill(text)
  await composer(at).press('Enter')
}
const finished = (at = page) => at.getByRole('button', { name: 'Answer again' }).last().waitFor({ timeout: 60_000 })
const answers = (at = page) => at.locator('article[aria-label="Answer"]')
const check = (what, ok) => {
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${what}`)
  if (!ok) problems.push(what)
}
/** The answer as the server stored it. */
const stored = async (at = page) => {
  const id = at.url().split('/').pop()
  const { results } = await (await at.request.get(`${url}/api/conversations/${id}/messages`)).json()
  return results
}
const squeeze = (text) => text.replace(/\s+/g, ' ').trim()

await page.goto(url)
await ask('a long answer, please')
await answers().getByText('Part 1', { exact: true }).waitFor({ timeout: 30_000 })
await page.reload()
await answers().getByText('Part 1', { exact: true }).waitFor({ timeout: 30_000 })
check('after a reload the answer is still being written', await page.getByRole('button', { name: 'Stop the answer' }).isVisible())

const second = await context.newPage()
await second.goto(page.url())
await answers(second).getByText('Part 2', { exact: true }).waitFor({ timeout: 30_000 })
check('a second tab follows the same answer', true)

await context.setOffline(true)
await page.waitForTimeout(1500)
await context.setOffline(false)
await finished()
await finished(second)
const headings = await answers().locator('h3, h4, h5').allTextContents()
check('every part is there once', squeeze(headings.join(' ')) === Array.from({ length: 24 }, (_, at) => `Part ${at + 1}`).join(' '))
check('both tabs show the same', squeeze(await answers().innerText()) === squeeze(await answers(second).innerText()))
check('one question and one answer are stored', (await stored()).length === 2)

await context.setOffline(true)
await ask('short, from a train')
await page.getByText('You are offline').waitFor({ timeout: 10_000 })
check('an offline message is shown as waiting', true)
await page.reload().catch(() => undefined)
await context.setOffline(false)
await page.reload()
await page.getByText('short, from a train').waitFor({ timeout: 20_000 })
await finished()
check('it went out once after a reload', (await stored()).filter((message) => message.text === 'short, from a train').length === 1)
await second.getByText('short, from a train').waitFor({ timeout: 10_000 })
check('the second tab shows it too', true)

await ask('long again')
await answers().last().getByText('Part 1', { exact: true }).waitFor({ timeout: 30_000 })
await page.keyboard.press('Escape')
await page.getByText('You stopped this answer.').waitFor({ timeout: 10_000 })
check('Escape stops', true)
await page.getByRole('button', { name: 'Answer again' }).last().click()
await page.getByText('2/2').waitFor({ timeout: 30_000 })
check('regenerating makes a second version', true)

console.log(problems.length ? problems.join('\n') : 'all well')
await browser.close()
process.exit(problems.length ? 1 : 0)

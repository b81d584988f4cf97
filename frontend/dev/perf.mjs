/**
 * Smoothness with a long conversation: opening it, scrolling through it, and an answer that streams at its end.
 * Figures are CPU time of the page's main thread, not wall time, so that a busy machine does not change them.
 * PARLEY_MOCK=many npm run dev, then: node dev/perf.mjs URL
 */
import { launch } from './browser.mjs'

const [url = 'http://127.0.0.1:5173', title = 'A very long conversation'] = process.argv.slice(2)
const browser = await launch()
const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage()

const phase = async (name, work) => {
  await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline'] })
  await work()
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString())
  const main = traceEvents.find((event) => event.name === 'thread_name' && event.args.name === 'CrRendererMain' && traceEvents.some((other) => other.pid === event.pid && other.tid === event.tid && other.name === 'FunctionCall'))
  const mine = traceEvents.filter((event) => event.pid === main.pid && event.tid === main.tid && event.tdur)
  const tasks = mine.filter((event) => event.name === 'RunTask' || event.name === 'ThreadControllerImpl::RunTask').map((event) => event.tdur / 1000)
  const by = new Map()
  for (const kind of ['FunctionCall', 'UpdateLayoutTree', 'Layout', 'PrePaint', 'Paint', 'Layerize', 'Commit', 'MajorGC', 'MinorGC', 'ParseHTML', 'EvaluateScript', 'HitTest']) {
    const total = mine.filter((event) => event.name === kind).reduce((sum, event) => sum + event.tdur / 1000, 0)
    if (total > 1) by.set(kind, Math.round(total))
  }
  const isTask = (event) => event.name === 'RunTask' || event.name === 'ThreadControllerImpl::RunTask'
  for (const task of process.env.DETAIL ? mine.filter((event) => isTask(event) && event.tdur > 50_000) : []) {
    const inside = mine.filter((event) => !isTask(event) && event.ts >= task.ts && event.ts < task.ts + task.dur && event.tdur > 3000)
    console.log('  long task:', inside.map((event) => `${event.name} ${Math.round(event.tdur / 1000)}${event.args?.data?.functionName ? ` ${event.args.data.functionName}` : ''}${event.args?.data?.type ? ` ${event.args.data.type}` : ''}`).join(' | '))
  }
  tasks.sort((a, b) => b - a)
  const long = tasks.filter((task) => task > 50)
  console.log(
    `${name}: total ${Math.round(tasks.reduce((a, b) => a + b, 0))} ms; longest ${tasks.slice(0, 5).map(Math.round).join(' ')}; over 50 ms: ${long.length}; ${[...by].map((pair) => pair.join(' ')).join(', ')}`,
  )
}

await page.goto(url)
await page.getByRole('link', { name: title }).waitFor()
await page.waitForTimeout(1000)
await phase('open', async () => {
  await page.getByRole('link', { name: title }).click()
  await page.getByRole('article', { name: 'Answer' }).last().waitFor()
  await page.waitForTimeout(300)
})
await phase('mount all', () => page.waitForFunction(() => document.querySelectorAll('article').length >= 1000, null, { timeout: 120_000 }))
console.log('nodes', await page.evaluate(() => document.querySelectorAll('*').length))
await page.waitForTimeout(2000)
await phase('scroll', async () => {
  await page.mouse.move(700, 300)
  for (let step = 0; step < 60; step += 1) {
    await page.mouse.wheel(0, -1500)
    await page.waitForTimeout(40)
  }
})
await phase('type', async () => page.getByRole('textbox', { name: 'Your question' }).pressSequentially('a long answer please', { delay: 40 }))
await phase('stream', async () => {
  await page.keyboard.press('Enter')
  await page.waitForTimeout(8000)
})
await browser.close()

/**
 * Screenshots of the main pages in both themes and two sizes, and a report of console errors and sideways scrolling.
 * node dev/shots.mjs URL OUT_DIR [name-filter]     (CHROMIUM names another browser than /usr/bin/chromium)
 */
import { mkdirSync } from 'node:fs'
import { launch } from './browser.mjs'

const [url = 'http://127.0.0.1:5173', out = 'shots', filter = ''] = process.argv.slice(2)
mkdirSync(out, { recursive: true })
const sizes = { phone: { width: 390, height: 844 }, desk: { width: 1440, height: 900 } }

const openConversation = async (page, title) => {
  const menu = page.getByRole('button', { name: 'Show conversations' })
  if (await menu.isVisible()) await menu.click()
  await page.getByRole('link', { name: title, exact: true }).click()
}
const ask = async (page, text) => {
  await page.getByRole('textbox', { name: 'Your question' }).fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

const scenes = {
  new: async () => undefined,
  conversation: async (page) => openConversation(page, 'Explain eventual consistency'),
  rtl: async (page) => openConversation(page, 'مقدمة في الجبر الخطي'),
  streaming: async (page) => {
    await ask(page, 'Please answer slowly: where should I start with consistency?')
    await page.waitForTimeout(9000)
  },
  queued: async (page) => {
    await ask(page, 'queue me, please')
    await page.waitForTimeout(1200)
  },
  failed: async (page) => {
    await ask(page, 'fail half way, please')
    await page.getByRole('button', { name: 'Try again' }).waitFor()
  },
  overloaded: async (page) => {
    await ask(page, 'overload the server')
    await page.getByRole('button', { name: 'Try now' }).waitFor()
  },
  citation: async (page) => {
    await ask(page, 'cite the survey on the hall')
    await page.getByRole('button', { name: 'Jump to the end' }).waitFor({ state: 'attached' })
    await page.getByRole('button', { name: 'Answer again' }).waitFor()
    await page.locator('article[aria-label="Answer"] button').filter({ hasText: '1' }).first().click()
    await page.waitForTimeout(1200)
  },
  menu: async (page, size) => {
    if (size === 'phone') await page.getByRole('button', { name: 'Show conversations' }).click()
    await page.getByRole('button', { name: /Ada Lovelace/ }).click()
  },
  model: async (page) => page.getByRole('button', { name: /^Model/ }).click(),
  search: async (page) => {
    await page.keyboard.press('Control+k')
    await page.waitForTimeout(200)
    await page.keyboard.type('re')
    await page.waitForTimeout(600)
  },
  settings: async (page) => page.goto(`${url}/settings`),
}

const browser = await launch()
for (const [name, play] of Object.entries(scenes)) {
  if (filter && !name.match(filter)) continue
  for (const [size, viewport] of Object.entries(sizes)) {
    for (const colorScheme of ['light', 'dark']) {
      const context = await browser.newContext({ viewport, colorScheme, hasTouch: size === 'phone', isMobile: size === 'phone' })
      const page = await context.newPage()
      page.on('console', (message) => message.type() === 'error' && console.log(`${name} ${size}: ${message.text().slice(0, 160)}`))
      page.on('pageerror', (error) => console.log(`${name} ${size}: ${String(error).slice(0, 160)}`))
      await page.goto(url)
      await page.waitForSelector('form, main')
      await page.waitForTimeout(500)
      try {
        await play(page, size)
        await page.waitForTimeout(700)
      } catch (error) {
        console.log(`${name} ${size} ${colorScheme}: ${String(error).slice(0, 300)}`)
      }
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
      if (wide > 0) console.log(`${name} ${size}: ${wide} px wider than the window`)
      await page.screenshot({ path: `${out}/${name}-${size}-${colorScheme}.png` })
      await context.close()
    }
  }
}
await browser.close()

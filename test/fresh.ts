// Plays writes in the example app, in a browser with its cache on. The contract lets a browser show an old list for a
// while; the typed client must prevent that, so every page must show each write at once.
import type { Page } from 'playwright-core'
import type { Test } from 'tap'

import { entry, notified, startExample } from './example.ts'

/** A write: the page to write on, the write itself, and the text that each page has or does not have afterwards. */
interface Write {
  name: string
  at: string
  act: (page: Page) => Promise<unknown>
  shown: Record<string, RegExp | [without: RegExp]>
}

/** Starts the example app. `play` plays writes, `open` opens a page, and `robotics` is the page of a club. */
export async function startFresh () {
  const example = await startExample()
  const { origin, sql } = example

  const shown = async (page: Page) => {
    await page.locator('main:not([aria-busy]) h1').waitFor()
    return (await page.textContent('main'))!
  }

  /** Loads a page, and returns its text as it is shown first. */
  async function open (page: Page, path: string) {
    await page.goto(origin + path)
    return shown(page)
  }

  /** Follows a link to a page of the app, and returns its text as it is shown first. */
  async function followTo (page: Page, path: string) {
    await page.evaluate(`{
      const link = Object.assign(document.createElement('a'), { href: '${path}' })
      document.body.append(link)
      link.click()
      link.remove()
    }`)
    return shown(page)
  }

  /** Goes back to a page, and returns its text as it is shown first. */
  async function goBackTo (page: Page, path: string) {
    // The write itself may have opened a page.
    for (let n = 0; n < 3 && page.url() !== origin + path; n++) {
      const before = page.url()
      // `page.goBack` fails while a page that was left is still being closed.
      await page.evaluate('void setTimeout(() => history.back(), 100)')
      // A page that needs a sign-in leads to it before it is loaded.
      await page.waitForURL(url => url.href !== before, { waitUntil: 'commit' })
      await shown(page)
    }
    return shown(page)
  }

  /**
   * Opens every page before each write, and the last in a second tab, so that the browser has the old lists. After the
   * write, follows links to the pages, and loads the last one again in the second tab.
   */
  async function play (t: Test, page: Page, writes: Write[]) {
    const second = await page.context().newPage()
    /** The texts of the pages that were opened since the last write. */
    let texts = new Map<string, string>()
    for (const { name, at, act, shown } of writes) {
      const check = (text: string, words: RegExp | [RegExp], what: string) => Array.isArray(words)
        ? t.notMatch(text, words[0], `${what} after: ${name}`)
        : t.match(text, words, `${what} after: ${name}`)
      const pages = Object.entries(shown)
      const [last, lastWords] = pages.at(-1)!
      if (second.url() !== origin + last) await open(second, last)
      for (const [path, words] of pages) {
        // Back leads to the last page, so it is opened in any case.
        const known = path === last ? undefined : texts.get(path)
        const text = known ?? await followTo(page, path)
        if (Array.isArray(words)) t.match(text, words[0], `${path} before: ${name}`)
        else t.notMatch(text, words, `${path} before: ${name}`)
      }
      await followTo(page, at)
      await act(page)
      check(await goBackTo(page, last), lastWords, `Back to ${last}`)
      check(await open(second, last), lastWords, `${last} in the second tab`)
      texts = new Map()
      for (const [path, words] of pages) {
        const text = await followTo(page, path)
        check(text, words, path)
        texts.set(path, text)
      }
    }
    await second.close()
  }

  const id = async (table: string, column: string, value: string) =>
    (await sql`SELECT id FROM ${sql(table)} WHERE ${sql(column)} = ${value}`)[0]!.id as string
  const robotics = `/clubs/${await id('clubs', 'name', 'Robotics Workshop')}`
  return { ...example, open, play, id, robotics }
}

/** Presses a button. */
export const press = (name: string) => (page: Page) => page.getByRole('button', { name, exact: true }).click()

const save = async (page: Page, told: string) => {
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await notified(page, told)
}

/** Fills in the form of a dialog that this button opens, and saves it. */
export const fill = (
  button: string, fields: Record<string, string>, told: string, of?: string
) => async (page: Page) => {
  await (of ? entry(page, of) : page).getByRole('button', { name: button, exact: true }).click()
  const dialog = page.getByRole('dialog')
  for (const [label, value] of Object.entries(fields)) {
    const field = dialog.getByLabel(new RegExp(`^${label}( \\(optional\\))?$`))
    if (label === 'Address of the picture') await dialog.getByText('Use an address instead').click()
    if (await field.evaluate((element: any) => element.tagName) === 'SELECT') await field.selectOption(value)
    else await field.fill(value)
  }
  await save(page, told)
}

/** Presses a button of a list entry, and confirms it. */
export const confirm = (of: string, button: string, told: string) => async (page: Page) => {
  await entry(page, of).getByRole('button', { name: button, exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: button, exact: true }).click()
  await notified(page, told)
}

export const PICTURE = { 'Address of the picture': 'data:image/png,' }

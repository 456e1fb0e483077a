// The example app for tests in a browser, as `npm run example` starts it.
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import type { BrowserContextOptions, Page, Request } from 'playwright-core'
import PostalMime from 'postal-mime'
import postgres from 'postgres'

import { sharedBrowser } from './chromium.ts'
import { createDatabase } from './helper.ts'
import { dataDir, freePort, start } from './process.ts'
import t, { type Test } from './suite.ts'

export const PASSWORD = 'demo-password'

interface Options extends BrowserContextOptions {
  /** The error responses that the walk expects: `METHOD /path status`. */
  refusals?: string[]
}

/** Starts the service, the app and a browser. Emails are files in the folder `mails`. */
export async function startExample (environment: NodeJS.Dict<string> = {}) {
  const { PORT = String(await freePort()), APP_PORT = String(await freePort()) } = environment
  const api = `http://localhost:${PORT}`
  const origin = `http://localhost:${APP_PORT}`
  const DATA_DIR = dataDir(t)
  const mails = join(DATA_DIR, 'mail')
  const DATABASE_URL = await createDatabase()
  const sql = postgres(DATABASE_URL, { max: 1 })
  t.teardown(() => sql.end())
  const example = start(t, 'examples/spa/start.js', {
    NODE_ENV: 'development', DATA_DIR, DATABASE_URL, ...environment, PORT, APP_PORT,
  })
  while (!example.output.stdout.includes('Ctrl-C')) await once(example.child.stdout, 'data')
  // Before the first test, because tap ends a file as soon as no test is pending.
  const browser = await sharedBrowser()

  /**
   * A test with a new browser profile, on the first page. Fails if the browser logs an error, or if the service returns
   * an unexpected one.
   */
  function walk (
    name: string, { refusals = [], ...options }: Options, work: (t: Test, page: Page) => Promise<void>
  ) {
    t.test(name, async t => {
      const context = await browser.newContext({
        viewport: { width: 1280, height: 860 }, locale: 'en-GB', timezoneId: 'Europe/Berlin', ...options,
      })
      const page = await context.newPage()
      t.teardown(async () => {
        // A walk that answers requests itself may still be answering one.
        await page.unrouteAll({ behavior: 'ignoreErrors' })
        await context.close()
      })
      page.setDefaultTimeout(30_000)
      const complaints: string[] = []
      const refused: string[] = []
      page.on('pageerror', error => { complaints.push(error.message) })
      page.on('console', message => {
        // Failed requests are reported below, with more details.
        const isTold = message.text().startsWith('Failed to load resource')
        if (['error', 'warning'].includes(message.type()) && !isTold) complaints.push(message.text())
      })
      page.on('requestfailed', request => {
        // Navigation aborts the requests of a page.
        const isLeft = request.failure()?.errorText === 'net::ERR_ABORTED'
        const exists = !new URL(request.url()).hostname.endsWith('.example.org')
        if (exists && !isLeft) refused.push(`${operation(request)} failed`)
      })
      page.on('response', response => {
        const error = `${operation(response.request())} ${response.status()}`
        // How often a page reads depends on the time.
        const isRepeated = response.request().method() === 'GET' && refused.includes(error)
        if (response.status() >= 400 && !isRepeated) refused.push(error)
      })

      try {
        await page.goto(origin)
        await page.waitForSelector('h1')
        await work(t, page)
      } catch (error) {
        t.comment(page.url(), await page.textContent('body'), complaints, refused)
        throw error
      }
      t.strictSame(complaints, [], 'the browser logs no errors')
      if (!t.strictSame(refused, refusals, 'only the expected errors')) t.comment(example.output.stdout)
    })
  }

  /** Signs in, and continues on a page of the app. */
  async function signIn (page: Page, name: string, { to = '', shared = false } = {}) {
    if (to) await page.goto(`${origin}/sign-in?${new URLSearchParams({ to })}`)
    else await follow(page, 'Sign in')
    await page.getByLabel('Email').fill(`${name}@demo.example.org`)
    await page.getByLabel('Password').fill(PASSWORD)
    if (shared) await page.getByLabel('This is a shared computer').check()
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await notified(page, 'Welcome, ')
  }

  /** Signs in without the app. */
  async function tokenOf (email: string, password = PASSWORD) {
    const response = await fetch(`${api}/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email, password }),
    })
    return (await response.json() as { token: string }).token
  }

  /** Sends a request of a person without the app. */
  async function send (method: string, path: string, token: string, body?: object) {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(api + path, { method, headers, body: body && JSON.stringify(body) })
    if (!response.ok) throw new Error(await response.text())
    return response.json() as Promise<any>
  }

  /** Waits for an email with these words in its subject. */
  async function emailTo (email: string, subject: string) {
    const deadline = performance.now() + 30_000
    while (performance.now() < deadline) {
      for (const name of await readdir(mails).catch(() => [])) {
        if (!name.endsWith('.eml')) continue
        const message = await PostalMime.parse(await readFile(join(mails, name)))
        if (message.to?.[0]?.address === email && message.subject?.includes(subject)) return message
      }
      await sleep(100)
    }
    throw new Error(`No email “${subject}” to ${email}`)
  }

  /** The link in such an email. */
  async function linkTo (email: string, subject: string) {
    return /http:\S+#token=\S+/.exec((await emailTo(email, subject)).text!)![0]
  }

  // Demo accounts are verified. The walks also show what a person sees before.
  await sql`UPDATE users SET email_verified_at = NULL WHERE email = 'student@demo.example.org'`
  return { api, origin, mails, sql, example, browser, walk, signIn, tokenOf, send, emailTo, linkTo }
}

/** The method and path of a request, as in the API description. */
const operation = (request: Request) =>
  `${request.method()} ${new URL(request.url()).pathname.replace(/[0-9a-f]{8}-[-0-9a-f]{27}/, '{id}')}`

export const h1 = (page: Page) => page.textContent('h1')

/** Follows a link of the navigation, and waits for the page. */
export async function follow (page: Page, name: string, title = name) {
  await page.getByRole('link', { name, exact: true }).first().click()
  await page.getByRole('heading', { level: 1, name: title }).waitFor()
}

/** Waits for a notification. */
export const notified = (page: Page, words: string) => page.locator('#notices').getByText(words).waitFor()

/** The list entry with this heading. */
export const entry = (page: Page, title: string) =>
  page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: title }) })

/** The right end of the buttons in a table, which can be wider than the screen although the page fits. */
export const endOfButtons = (page: Page): Promise<number> => page.locator('tbody button').evaluateAll(buttons =>
  Math.max(...buttons.map(button => button.getBoundingClientRect().right)))

/** Whether the page fits into the width of the screen. */
export const fits = (page: Page) => page.evaluate('document.documentElement.scrollWidth <= innerWidth')

/** Records the streams of a page from now on. */
export function watchStreams (page: Page) {
  const open = new Set<Request>()
  const seen: string[] = []
  /** The requests that the page has sent since it opened its last stream. */
  const updates = new Set<Request>()
  let isRead = false
  page.on('request', request => {
    if (new URL(request.url()).pathname === '/live') {
      open.add(request)
      seen.push(request.url())
      updates.clear()
      isRead = false
    } else if (request.resourceType() === 'fetch' && request.method() === 'GET') updates.add(request)
  })
  page.on('requestfailed', request => { open.delete(request) })
  page.on('requestfinished', request => {
    open.delete(request)
    if (updates.delete(request)) isRead = updates.size === 0
  })
  /** Waits until the page watches a list, and has read it again, which the first message of a stream causes. */
  async function upToDate (list: string) {
    const isUpToDate = () => isRead && decodeURIComponent(seen.at(-1)!).includes(`?list=${list}`)
    while (!isUpToDate()) await sleep(10)
    // The page shows the response.
    await sleep(50)
  }
  async function closed () { while (open.size > 0) await sleep(10) }
  return { seen, count: () => open.size, upToDate, closed }
}

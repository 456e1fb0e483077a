import { type Browser, type BrowserContextOptions, chromium } from 'playwright-core'
import tap from 'tap'

import type { Teardown } from './scope.ts'

/** The browser of all tests in this process. Starting one takes longer than a short walk. */
let shared: Promise<Browser> | undefined

/** Returns the browser of this process. */
export function sharedBrowser () {
  shared ??= launch(tap)
  return shared
}

/** Starts Chromium: `/usr/bin/chromium`, or the one at `CHROMIUM_PATH`. */
export async function launch (t: Teardown) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH || '/usr/bin/chromium',
    args: [
      '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update',
      '--disable-sync', '--no-first-run',
      // The pictures that tests enter do not exist. A route of Playwright would turn the cache off.
      '--host-resolver-rules=MAP *.example.org ~NOTFOUND',
    ],
  })
  t.teardown(() => browser.close())
  return browser
}

/** Opens a page with a profile of its own in the browser of this process. */
export async function openPage (t: Teardown, options?: BrowserContextOptions) {
  const page = await (await sharedBrowser()).newPage(options)
  t.teardown(() => page.close())
  return page
}

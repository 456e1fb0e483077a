import { chromium } from 'playwright-core'

import type { Teardown } from './scope.ts'

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

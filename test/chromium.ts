import { chromium } from 'playwright-core'

/** What of a tap test is used here: whatever is opened is closed when it ends. */
interface Test {
  teardown (clean: () => unknown): void
}

/** Starts Chromium: `/usr/bin/chromium`, or the one at `CHROMIUM_PATH`. */
export async function launch (t: Test) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH || '/usr/bin/chromium',
    args: [
      '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update',
      '--disable-sync', '--no-first-run',
    ],
  })
  t.teardown(() => browser.close())
  return browser
}

import { readdirSync } from 'node:fs'

import tap, { type Test } from 'tap'

/** The test that the file being loaded adds its own to: the root, or in a suite a test of its own. */
let t: Test = tap
export { t as default, type Test }

const SUITES = 4

/**
 * Runs every fourth file of tests, from the one with this index (0 to 3), one after the other in this process, which
 * loads the application once for all of them: to load it takes longer than the tests of most files.
 */
export async function runSuite (index: number) {
  const paths = readdirSync('dist/test', { recursive: true, encoding: 'utf8' })
  const files = paths.filter(path => path.endsWith('.test.js')).sort()
  for (const file of files.filter((_, position) => position % SUITES === index)) {
    await tap.test(file, async test => {
      t = test
      await import(`./${file}`)
    })
  }
}

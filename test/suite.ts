import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import tap, { type Test } from 'tap'

import { currentRun, RUN_DIR } from './run.ts'

/** The test that receives the tests of the loaded file: the root, or in a suite a test of its own. */
let t: Test = tap
export { t as default, type Test }

/**
 * Runs files of tests in this process, one after the other, so that a process loads the application or a browser only
 * once. Loading it takes longer than the tests of most files. Each file in test/suites/ and test/browser/suites/ is
 * such a process, and they run all at once: each takes the next file that no other has taken. A file works the same by
 * itself, by `npx tap`.
 */
export async function runSuite (pattern = /\.test\.js$/) {
  const files = readdirSync('dist/test', { recursive: true, encoding: 'utf8' }).filter(path => pattern.test(path))
  const sizeOf = (file: string) => statSync(`dist/test/${file}`).size
  // The longest files come first, because most of them take longest. So all suites end at about the same time.
  for (const file of files.sort((one, other) => sizeOf(other) - sizeOf(one))) {
    if (!take(file)) continue
    await tap.test(file, async test => {
      t = test
      await import(`./${file}`)
    })
  }
}

/** Tells whether this suite is the first of the run to claim the file. A killed run leaves its claims. */
function take (file: string) {
  try {
    writeFileSync(join(RUN_DIR, `${currentRun().template} ${file.replaceAll('/', ' ')}`), '', { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return false
  }
}

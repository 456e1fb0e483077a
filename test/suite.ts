import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

import t from 'tap'

/** Which test files share a process, by folder and name: starting one for each would take longer than most run. */
export const SUITES = {
  commands: /^lib\/commands\//,
  'lib-1': /^lib\/([a-d][^/]*$|cache\/)/,
  'lib-2': /^lib\/[e-r][^/]*$/,
  'lib-3': /^lib\/[s-z][^/]*$/,
  plugins: /^plugins\//,
  'routes-1': /^routes\/a/,
  'routes-2': /^routes\/[b-o]/,
  'routes-3': /^routes\/[p-z]/,
  whole: /^[^/]*$/,
}

/** All test files, by their paths in the folder of the tests. */
export async function testFiles () {
  const files = await readdir(import.meta.dirname, { recursive: true })
  return files.filter(file => file.endsWith('.test.js')).sort()
}

/** What a file could leave changed for the next one. */
const surroundings = () => ({
  environment: { ...process.env },
  directory: process.cwd(),
  exitCode: process.exitCode,
  now: Date.now,
  setTimeout: globalThis.setTimeout,
  log: console.log,
})

/** Runs the files of a suite, one after the other, in this process. */
export async function runSuite (name: keyof typeof SUITES) {
  const files = (await testFiles()).filter(file => SUITES[name].test(file))
  for (const file of files) {
    const before = surroundings()
    // What a file makes for all of its tests is to be gone before the next, and not only when the process ends.
    const cleanups: (() => unknown)[] = []
    Object.assign(t, { teardown: (clean: () => unknown) => { cleanups.unshift(clean) } })
    await import(join(import.meta.dirname, file))
    // Comes after the tests of the file.
    await t.test(`${file} leaves everything as it was`, async t => {
      for (const clean of cleanups) await clean()
      t.strictSame(surroundings(), before)
    })
  }
}

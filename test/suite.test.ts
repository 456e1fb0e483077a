import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

import t from 'tap'

import { SUITES, testFiles } from './suite.ts'

t.test('Every test file is in one suite, and every suite is run', async t => {
  for (const file of await testFiles()) {
    t.equal(Object.values(SUITES).filter(names => names.test(file)).length, 1, file)
  }
  const run = (await readdir(join(import.meta.dirname, 'suites'))).filter(file => file.endsWith('.js'))
  t.strictSame(run.sort(), Object.keys(SUITES).map(name => `${name}.js`).sort())
})

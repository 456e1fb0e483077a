import t from 'tap'

import { run } from '../process.ts'

t.test('a command must be named, and be one', async t => {
  for (const args of [[], ['sideways']]) {
    t.strictSame(await run(t, 'dist/lib/cli.js', {}, { args }), {
      code: 1, signal: null, stdout: '', stderr: 'Name a command: migrate or user\n',
    })
  }
})

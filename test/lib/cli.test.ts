import t from 'tap'

import { run } from '../process.ts'

t.test('a command must be named, and be one', async t => {
  for (const args of [[], ['sideways']]) {
    t.strictSame(await run(t, 'dist/lib/cli.js', {}, { args, covered: true }), {
      code: 1, signal: null, stdout: '', stderr: 'Name a command: database or migrate or openapi or seed or user\n',
    })
  }
})

t.test('--help tells which there are', async t => {
  t.match(await run(t, 'dist/lib/cli.js', {}, { args: ['--help'], covered: true }), {
    code: 0, stdout: /^Usage: node dist\/lib\/cli.js COMMAND /, stderr: '',
  })
})

t.test('a command gets what follows its name', async t => {
  t.match(await run(t, 'dist/lib/cli.js', {}, { args: ['user', '--help'], covered: true }), {
    code: 0, stdout: /^Usage: npm run user /, stderr: '',
  })
})

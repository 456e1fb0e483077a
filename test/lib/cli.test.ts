import { run, start } from '../process.ts'
import t from '../suite.ts'

t.test('A command must be named, and exist', async t => {
  for (const args of [[], ['sideways']]) {
    const stderr = 'Give a command: database, email, migrate, openapi, seed, user\n'
    t.strictSame(await run(t, 'dist/lib/cli.js', {}, { args, covered: true }), {
      code: 1, signal: null, stdout: '', stderr,
    })
  }
})

t.test('--help lists the commands', async t => {
  t.match(await run(t, 'dist/lib/cli.js', {}, { args: ['--help'], covered: true }), {
    code: 0, stdout: /^Usage: node dist\/lib\/cli.js COMMAND /, stderr: '',
  })
})

t.test('A command gets the arguments after its name', async t => {
  t.match(await run(t, 'dist/lib/cli.js', {}, { args: ['user', '--help'], covered: true }), {
    code: 0, stdout: /^Usage: npm run user /, stderr: '',
  })
})

t.test('A command fails if its output cannot be written', async t => {
  const options = { args: ['--help'], covered: true }
  t.strictSame(await run(t, 'dist/lib/cli.js', {}, { ...options, stdout: '/dev/full' }), {
    code: 1, signal: null, stdout: '', stderr: 'Cannot write the output: ENOSPC: no space left on device, write\n',
  })
  const { child, ended } = start(t, 'dist/lib/cli.js', {}, options)
  child.stdout.destroy()
  t.match(await ended, { code: 1, stderr: '' })
})

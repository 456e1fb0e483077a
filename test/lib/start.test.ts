import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

import t from 'tap'

/** Tells how many threads the pool is to have, when the process first uses it for a file, or else at the end. */
const PRELUDE = `
  const hook = require('node:async_hooks').createHook({
    init: (id, type) => type.startsWith('FSREQ') && tell(),
  }).enable()

  function tell () {
    hook.disable()
    process.off('exit', tell)
    require('node:fs').writeSync(1, String(process.env.UV_THREADPOOL_SIZE))
  }
  process.on('exit', tell)
`

t.test('The pool of threads has its size before anything uses it', async t => {
  const prelude = join(t.testdir({ 'prelude.cjs': PRELUDE }), 'prelude.cjs')
  const { UV_THREADPOOL_SIZE, ...env } = process.env
  const sizeFor = (environment: NodeJS.Dict<string>) => new Promise<string>(resolve => {
    // What measures coverage would use the pool before.
    execFile('env', ['-u', 'NODE_OPTIONS', process.execPath, '--require', prelude, 'dist/lib/start.cjs'], {
      env: { ...env, DATABASE_URL: 'none', ...environment },
    }, (_error, stdout) => resolve(stdout))
  })
  t.equal(await sizeFor({}), String(Math.max(2, availableParallelism())), 'a thread for each core, and two at least')
  t.equal(await sizeFor({ UV_THREADPOOL_SIZE: '7' }), '7', 'or as many as there are to be')
})

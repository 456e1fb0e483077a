import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

import t, { type Test } from '../suite.ts'

/** The script that starts the service. */
const START = 'bin/start'

/** Replaces the service, and prints how it was started. */
const PRELUDE = `
  const { argv, env, execArgv, ppid } = process
  console.log(JSON.stringify({ argv, env, execArgv, ppid }))
  process.exit()
`

/** Runs `bin/start` from a different directory. */
async function started (t: Test, environment: NodeJS.Dict<string> = {}) {
  const { MALLOC_ARENA_MAX, ...env } = process.env
  const prelude = join(t.testdir({ 'prelude.cjs': PRELUDE }), 'prelude.cjs')
  // tap adds NODE_OPTIONS for coverage to every child process, so only `env` can replace them.
  const { stdout } = await promisify(execFile)('env', [`NODE_OPTIONS=--require ${prelude}`, resolve(START)], {
    cwd: '/', env: { ...env, ...environment },
  })
  return JSON.parse(stdout) as Pick<NodeJS.Process, 'argv' | 'env' | 'execArgv' | 'ppid'>
}

t.test('The process is the service itself, with its options', async t => {
  const { argv, env, execArgv, ppid } = await started(t)
  t.equal(resolve(argv[1]!), resolve('dist/lib/server.js'))
  t.equal(ppid, process.pid, 'no shell that would keep signals from it')
  t.strictSame(execArgv, [])
  t.equal(env.MALLOC_ARENA_MAX, '1')
})

t.test('Variables of the environment override its options', async t => {
  const { env } = await started(t, { MALLOC_ARENA_MAX: '3' })
  t.equal(env.MALLOC_ARENA_MAX, '3')
})

t.test('The container image runs it', async t => {
  t.match(await readFile('Dockerfile', 'utf8'), `\nCMD ["${START}"]\n`)
})

t.test('Base images are pinned by their digests', async t => {
  const text = await readFile('Dockerfile', 'utf8') + await readFile('compose.yaml', 'utf8')
  const images = [...text.matchAll(/(?:^FROM|image:) (.+)/gm)].map(([, image]) => image!)
  const isOurs = (image: string) => image === 'community-platform'
  t.equal(images.filter(image => !isOurs(image)).length, 3)
  for (const image of images) t.ok(isOurs(image) || /@sha256:[0-9a-f]{64}( AS \w+)?$/.test(image), image)
})

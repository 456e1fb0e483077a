import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

import t from 'tap'

import { createDatabase } from '../../helper.ts'
import { redirectImport, run } from '../../process.ts'

const FIRST_ENDED = 'Worker 1 of 2 ended by exit code 1 before it served'

t.test('A failed start is a line of the process that failed, and no loop', async t => {
  const migrated = await createDatabase(t)
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const { port: PORT } = taken.address() as AddressInfo
  const inWorker = (code: string) => `import cluster from 'node:cluster'; if (cluster.isWorker) ${code}`
  const starts: [what: string, variables: NodeJS.Dict<string>, prelude: string | undefined, lines: unknown[]][] = [
    ['a variable that is wrong by now', {}, inWorker("process.env.LOG_LEVEL = 'loud'"),
      [/^LOG_LEVEL must be fatal, error, /, FIRST_ENDED]],
    ['a taken port', { PORT: String(PORT) }, undefined,
      [`127.0.0.1:${PORT} is taken: stop what listens there, or set PORT`, FIRST_ENDED]],
    ['a host that is nowhere', { HOST: 'nowhere.invalid' }, undefined,
      [/^Cannot listen on nowhere\.invalid:0: /, FIRST_ENDED]],
    ['a database without the schema', { DATABASE_URL: await createDatabase(t, { migrated: false }) }, undefined,
      [/^The database lacks \d+ migrations: /]],
    ['a worker that is killed', {}, inWorker("process.kill(process.pid, 'SIGKILL')"),
      ['Worker 1 of 2 ended by SIGKILL before it served']],
    ['a process that cannot be spawned', {},
      "import cluster from 'node:cluster'; cluster.setupPrimary({ cwd: '/none' })",
      [/^Worker 1 of 2 ended by spawn .* ENOENT before it served$/]],
  ]
  for (const [what, variables, prelude, lines] of starts) {
    const { code, stderr } = await run(t, 'dist/lib/server.js', {
      DATABASE_URL: migrated, PORT: '0', WORKERS: '2', ...variables,
    }, { prelude, covered: ['a taken port', 'a process that cannot be spawned'].includes(what) })
    t.equal(code, 1, what)
    const printed = stderr.split('\n')
    t.match(printed, [...lines, ''], what)
    t.equal(printed.length, lines.length + 1, `no more lines of ${what}`)
  }
})

t.test('A defect that keeps a worker from starting is printed once, with all that is known about it', async t => {
  const { code, stderr } = await run(t, 'dist/lib/server.js', {
    DATABASE_URL: await createDatabase(t), PORT: '0', WORKERS: '2',
  }, { prelude: redirectImport('@fastify/autoload', 'test/none.js', 'module'), covered: true })
  t.equal(code, 1)
  t.equal(stderr.match(/^\S.*none\.js/gm)?.length, 1)
  t.match(stderr, /\n {4}at /)
  t.ok(stderr.endsWith(`\n${FIRST_ENDED}\n`))
})

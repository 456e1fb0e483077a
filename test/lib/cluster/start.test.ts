import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

import t from 'tap'

import { createDatabase } from '../../helper.ts'
import { freePort, redirectImport, run } from '../../process.ts'

t.test('A failed start is one line, and no loop', async t => {
  const migrated = await createDatabase(t)
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const { port: PORT } = taken.address() as AddressInfo
  const port = await freePort()
  const inWorker = (code: string) => `import cluster from 'node:cluster'; if (cluster.isWorker) ${code}`
  const starts: [what: string, variables: NodeJS.Dict<string>, prelude: string | undefined, line: string | RegExp][] = [
    ['a wrong variable', { WORKERS: 'all' }, undefined,
      'WORKERS must be a number of processes from 1 to 99, or auto for one on each core'],
    ['a taken port', { PORT: String(PORT) }, undefined,
      `127.0.0.1:${PORT} is taken: stop what listens there, or set PORT`],
    ['a host that is nowhere', { HOST: 'nowhere.invalid' }, undefined, /^Cannot listen on nowhere\.invalid:0: /],
    ['an unreachable database', { DATABASE_URL: `postgres://127.0.0.1:${port}/name` }, undefined,
      `Cannot reach the database at 127.0.0.1:${port}/name: connect ECONNREFUSED 127.0.0.1:${port}`],
    ['a database without the schema', { DATABASE_URL: await createDatabase(t, { migrated: false }) }, undefined,
      /^The database lacks \d+ migrations: /],
    ['a worker that is killed', {}, inWorker("process.kill(process.pid, 'SIGKILL')"),
      'A worker ended by SIGKILL before it served'],
    ['a process that cannot be spawned', {},
      "import cluster from 'node:cluster'; cluster.setupPrimary({ cwd: '/none' })",
      /^A worker ended by spawn .* ENOENT before it served$/],
  ]
  for (const [what, variables, prelude, line] of starts) {
    const { code, stderr } = await run(t, 'dist/lib/server.js', {
      DATABASE_URL: migrated, PORT: '0', WORKERS: '2', ...variables,
    }, { prelude, covered: ['a taken port', 'a process that cannot be spawned'].includes(what) })
    t.equal(code, 1, what)
    const [first, ...rest] = stderr.split('\n')
    if (typeof line === 'string') t.equal(first, line, what)
    else t.match(first, line, what)
    t.strictSame(rest, [''], `${what} is one line`)
  }
})

t.test('A defect that keeps a worker from starting is printed with all that is known about it', async t => {
  const { code, stderr } = await run(t, 'dist/lib/server.js', {
    DATABASE_URL: await createDatabase(t), PORT: '0', WORKERS: '2',
  }, { prelude: redirectImport('@fastify/autoload', 'test/none.js', 'module'), covered: true })
  t.equal(code, 1)
  t.match(stderr, /none\.js/)
  t.match(stderr, /\n {4}at /)
})

import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'
import t, { type Test } from 'tap'

import { nextPause } from '#lib/cluster/primary.js'
import { VERSION } from '#lib/config.js'
import { createDatabase } from '../../helper.ts'
import {
  childrenOf, dataDir, freePort, isListening, postgresOf, redirectImport, remaining, run, type Service, signalGroup,
  start, startService,
} from '../../process.ts'

const ADMIN = { ADMIN_EMAIL: 'admin@example.org', ADMIN_PASSWORD: 'correct horse' }
const METRICS_TOKEN = 'a-token-of-the-tests'

/** Milliseconds until a request fails: a connection that is handed to a worker when that is killed stays silent. */
const TIMEOUT = 3000

interface Options {
  method?: string
  body?: unknown
  headers?: Record<string, string>
  /** What keeps connections; without one, each request has its own. */
  agent?: Agent
}

/** Sends a request. Node hands each new connection to the next worker. */
async function send ({ url }: Service, path: string, { method = 'GET', body, headers, agent }: Options = {}) {
  const sent = request(url + path, {
    method,
    agent: agent ?? false,
    signal: AbortSignal.timeout(TIMEOUT),
    headers: { ...headers, ...body !== undefined && { 'content-type': 'application/json' } },
  })
  sent.end(body && JSON.stringify(body))
  const [response] = await once(sent, 'response') as [IncomingMessage]
  const answer = await text(response)
  const parsed = answer.startsWith('{') ? JSON.parse(answer) : undefined
  return { status: response.statusCode!, headers: response.headers, text: answer, body: parsed }
}

interface Line {
  msg: string
  pid: number
  worker?: number
  reqId?: string
  err?: Error
}

/** The lines of the log so far; each must be whole. */
function linesOf ({ output }: Service) {
  const lines = output.stdout.split('\n').slice(0, -1).filter(line => !line.startsWith('> ') && line)
  return lines.map(line => JSON.parse(line) as Line)
}

async function until (isTrue: () => unknown) {
  while (!await isTrue()) await sleep(20)
}

/** A service with two workers, all of them ready. */
async function startWorkers (
  t: Test, variables: NodeJS.Dict<string> = {}, options: Parameters<typeof startService>[2] = {}
) {
  const DATABASE_URL = variables.DATA_DIR ? undefined : await createDatabase(t)
  const service = await startService(t, { DATABASE_URL, WORKERS: '2', ...variables }, options)
  await until(() => service.messages().includes('All 2 workers are ready'))
  const { pid } = linesOf(service).find(({ msg }) => msg.startsWith('All 2'))!
  return Object.assign(service, { pid, workers: () => childrenOf(pid) })
}

/** One sample of the metrics. */
async function sample (service: Service, name: string, agent?: Agent) {
  const metrics = await send(service, '/metrics', { headers: { authorization: `Bearer ${METRICS_TOKEN}` }, agent })
  const line = metrics.text.split('\n').find(line => line.startsWith(`${name} `))
  return Number(line?.slice(name.length))
}

const ready = (service: Service) => send(service, '/readyz').then(({ status }) => status === 200, () => false)

t.test('Two processes serve on one port, with one log', async t => {
  const service = await startWorkers(t, { ...ADMIN, METRICS_TOKEN, DATABASE_POOL_SIZE: '3' }, { covered: true })
  const workers = await service.workers()
  t.equal(workers.length, 2)
  const answers = await Promise.all(Array.from({ length: 10 }, () => send(service, '/clubs')))
  t.strictSame(answers.map(({ status }) => status), Array(10).fill(200))
  const login = { method: 'POST', body: { email: ADMIN.ADMIN_EMAIL, password: ADMIN.ADMIN_PASSWORD } }
  const { body: { token } } = await send(service, '/auth/login', login)
  const headers = { authorization: `Bearer ${token}` }
  for (let n = 0; n < 4; n++) {
    t.equal((await send(service, '/auth/me', { headers })).status, 200, 'a token is one of all')
  }
  t.equal(await ready(service), true)

  await t.test('the metrics are those of all', async t => {
    t.equal(await sample(service, 'http_request_duration_seconds_count{method="GET",route="/clubs",status="200"}'), 10)
    t.equal(await sample(service, 'database_pool_connections'), 3)
    t.ok(await sample(service, 'process_resident_memory_bytes') > 3 * 40e6, 'of three processes')
    t.ok(Math.abs(await sample(service, 'process_start_time_seconds') - Date.now() / 1000) < 300)
    t.equal(await sample(service, `build_info{version="${VERSION}",node="${process.version}"}`), 1)
  })

  const port = Number(new URL(service.url).port)
  service.child.kill('SIGTERM')
  const { code, stderr } = await service.ended
  t.strictSame({ code, stderr }, { code: 0, stderr: '' })
  t.equal(await isListening(port), false)
  t.strictSame(await remaining(workers), [])
  const lines = linesOf(service)
  const served = lines.filter(({ msg }) => msg === 'request completed').map(({ pid }) => pid)
  t.equal(served.length, 15)
  t.strictSame([...new Set(served)].sort(), workers.sort(), 'both have served')
  t.strictSame(lines.filter(({ msg }) => msg === 'Stopping on SIGTERM').map(({ pid }) => pid).sort(),
    [service.pid, ...workers].sort())
  t.equal(lines.filter(({ msg }) => msg === 'Admin account created from ADMIN_EMAIL').length, 1)
})

t.test('A worker that is killed is replaced, after pauses that grow, and what it has counted stays', async t => {
  // As when a message to a worker cannot be sent.
  const prelude = `import cluster from 'node:cluster'
    cluster.on('fork', worker => process.on('SIGWINCH', () => worker.emit('error', new Error('provoked'))))`
  const service = await startWorkers(t, { METRICS_TOKEN }, { covered: true, prelude })
  process.kill(service.pid, 'SIGWINCH')
  await until(() => service.messages().filter(message => message === 'Worker failed').length === 2)
  const CLUBS = 'http_request_duration_seconds_count{method="GET",route="/clubs",status="200"}'
  for (let n = 0; n < 10; n++) await send(service, '/clubs')
  t.equal(await sample(service, CLUBS), 10)

  const [first, second] = await service.workers() as [number, number]
  process.kill(first, 'SIGKILL')
  await until(async () => !await ready(service))
  t.equal((await send(service, '/clubs')).status, 200, 'the other one serves')
  t.equal(await sample(service, CLUBS), 11)
  await until(() => ready(service))
  t.equal(await sample(service, CLUBS), 11)
  const [third] = (await service.workers()).filter(pid => pid !== second) as [number]
  t.not(third, first)

  process.kill(third, 'SIGKILL')
  let fourth: number | undefined
  await until(async () => {
    fourth = (await service.workers()).find(pid => ![second, third].includes(pid))
    return fourth
  })
  process.kill(fourth!, 'SIGKILL')
  await until(() => service.messages().filter(message => message.startsWith('Worker ended')).length === 3)
  t.match(linesOf(service).filter(({ msg }) => msg.startsWith('Worker ended')), [
    { worker: first, msg: 'Worker ended by SIGKILL, the next one starts in 0.5 s' },
    { worker: third, msg: 'Worker ended by SIGKILL, the next one starts in 1 s' },
    {
      worker: fourth,
      msg: 'Worker ended by SIGKILL, the next one starts in 2 s',
      err: { message: 'A worker ended by SIGKILL before it served' },
    },
  ])
  t.equal((await send(service, '/clubs')).status, 200)
  service.child.kill('SIGTERM')
  t.equal((await service.ended).code, 0, 'it does not wait for the pause')
})

t.test('The pause grows to a bound, and is over when a worker has served for a while', async t => {
  const pauses = [0]
  while (pauses.length < 9) pauses.push(nextPause(pauses.at(-1)!, 59_999))
  t.strictSame(pauses, [0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  t.equal(nextPause(30_000, 60_000), 0)
})

t.test('It is ready when all workers are', async t => {
  const variables = { DATABASE_TIMEOUT: '1', STOP_DELAY: '1', METRICS_TOKEN, DATABASE_POOL_SIZE: '3' }
  const service = await startWorkers(t, variables, { covered: true })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  await send(service, '/clubs', { agent, headers: { 'x-request-id': 'first' } })
  const lineOfFirst = () => linesOf(service).find(({ reqId }) => reqId === 'first')
  await until(lineOfFirst)
  const other = (await service.workers()).find(pid => pid !== lineOfFirst()!.pid)!
  t.equal(await sample(service, 'database_pool_connections', agent), 3)

  process.kill(other, 'SIGSTOP')
  t.equal((await send(service, '/readyz', { agent })).status, 503, 'one does not answer')
  t.equal(await sample(service, 'database_pool_connections', agent), 3, 'it counts as it did when it answered last')
  process.kill(other, 'SIGCONT')
  await until(() => ready(service))

  process.kill(other, 'SIGTERM')
  await until(() => linesOf(service).some(({ msg, pid }) => msg === 'Stopping on SIGTERM' && pid === other))
  t.equal((await send(service, '/readyz', { agent })).status, 503, 'one is about to stop')
  await until(() => service.messages().some(message => message.startsWith('Worker ended by exit code 0')))
  await until(() => ready(service))
  service.child.kill('SIGTERM')
  t.equal((await service.ended).code, 0)
})

t.test('A stop under load loses no response and no line of the log', async t => {
  const service = await startWorkers(t, { STOP_DELAY: '1' })
  let received = 0
  const lost: unknown[] = []
  const clients = Array.from({ length: 16 }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let isStopping = false; !isStopping;) {
      try {
        const { status, headers } = await send(service, '/clubs', { agent })
        received++
        if (status !== 200) lost.push(status)
        isStopping = headers.connection === 'close'
      } catch (error) {
        lost.push(error)
        break
      }
    }
    agent.destroy()
  })
  await until(() => received >= 500)
  service.child.kill('SIGTERM')
  await Promise.all(clients)
  t.strictSame(lost, [])
  const { code, stderr } = await service.ended
  t.strictSame({ code, stderr }, { code: 0, stderr: '' })
  const lines = linesOf(service).filter(({ msg }) => msg === 'request completed')
  t.equal(lines.length, received)
  t.equal(new Set(lines.map(({ pid }) => pid)).size, 2)
})

const THROUGH_NPM: [what: string, signal: NodeJS.Signals, send: (service: Service) => unknown][] = [
  ['SIGTERM to npm', 'SIGTERM', ({ child }) => child.kill('SIGTERM')],
  ['SIGTERM to all processes', 'SIGTERM', ({ child }) => signalGroup(child, 'SIGTERM')],
  ['Ctrl-C', 'SIGINT', ({ child }) => signalGroup(child, 'SIGINT')],
]
for (const [what, signal, stop] of THROUGH_NPM) {
  t.test(`npm start, ${what}: all workers drain, and npm ends with 0`, async t => {
    const service = await startWorkers(t, { STOP_DELAY: '1' }, { npm: true })
    const workers = await service.workers()
    stop(service)
    await until(() => service.messages().includes(`Stopping on ${signal}`))
    await sleep(300)
    t.equal((await send(service, '/livez')).status, 200)
    t.equal((await send(service, '/readyz')).status, 503)
    t.equal((await service.ended).code, 0)
    t.equal(linesOf(service).filter(({ msg }) => msg.startsWith('Stopping on')).length, 3)
    t.strictSame(await remaining(workers), [])
  })
}

t.test('A second Ctrl-C ends all at once', async t => {
  const service = await startWorkers(t, { STOP_DELAY: '3600' }, { group: true })
  const workers = await service.workers()
  signalGroup(service.child, 'SIGINT')
  await until(() => service.messages().includes('Stopping on SIGINT'))
  await sleep(1000)
  t.equal((await send(service, '/livez')).status, 200)
  signalGroup(service.child, 'SIGINT')
  t.equal((await service.ended).code, 1)
  t.strictSame(await remaining(workers), [])
})

t.test('A worker that is killed while it stops fails the stop', async t => {
  const service = await startWorkers(t, { STOP_DELAY: '3600' }, { covered: true })
  const [first, second] = await service.workers() as [number, number]
  service.child.kill('SIGTERM')
  await until(() => linesOf(service).filter(({ msg }) => msg === 'Stopping on SIGTERM').length === 3)
  process.kill(first, 'SIGKILL')
  process.kill(second, 'SIGKILL')
  t.equal((await service.ended).code, 1)
  t.ok(linesOf(service).some(({ err }) => /^Worker \d+ ended by SIGKILL$/.test(err?.message ?? '')))
})

t.test('No worker outlives the first process', async t => {
  const service = await startWorkers(t)
  const workers = await service.workers()
  service.child.kill('SIGKILL')
  await service.ended
  t.strictSame(await remaining(workers), [])
})

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

t.test('The embedded database is started once, serves all, and is stopped with them', async t => {
  const DATA_DIR = dataDir(t)
  const service = await startWorkers(t, { DATA_DIR, ...ADMIN })
  const migrations = (await readdir('migrations')).length
  t.strictSame(service.messages().filter(message => !/^(Server listening|All 2)/.test(message)), [
    `Creating the embedded PostgreSQL in ${DATA_DIR}/postgres (first start only)`,
    `Database schema brought up to date: ${migrations} migrations`,
    'Admin account created from ADMIN_EMAIL',
  ])
  const [worker] = await service.workers()
  process.kill(worker!, 'SIGKILL')
  await until(async () => !await ready(service))
  await until(() => ready(service))
  const processes = await postgresOf(DATA_DIR)
  t.ok(processes.length > 1)
  service.child.kill('SIGTERM')
  t.equal((await service.ended).code, 0)
  t.strictSame(await remaining(processes), [])
})

t.test('A stop while it starts ends with 0, and leaves nothing', async t => {
  const DATA_DIR = dataDir(t)
  const variables = { DATA_DIR, PORT: '0', WORKERS: '2' }
  const { child, output, ended } = start(t, 'dist/lib/server.js', variables, { covered: true })
  await until(() => output.stdout.includes('Creating the embedded PostgreSQL') ||
    readdir(DATA_DIR).then(files => files.length > 0, () => false))
  child.kill('SIGTERM')
  const { code, stderr } = await ended
  t.strictSame({ code, stderr }, { code: 0, stderr: '' })
  t.strictSame(await postgresOf(DATA_DIR), [])
})

t.test('What one worker has written, all show', async t => {
  const DATABASE_URL = await createDatabase(t)
  const service = await startWorkers(t, { DATABASE_URL })
  const sql = postgres(DATABASE_URL, { max: 1 })
  t.teardown(() => sql.end())
  const account = { email: 'ada@example.org', password: 'correct horse', firstName: 'Ada', lastName: 'Lovelace' }
  await send(service, '/auth/register', { method: 'POST', body: account })
  await sql`UPDATE users SET role = 'ADMIN'`
  const { body: { token } } = await send(service, '/auth/login', { method: 'POST', body: account })
  // Connections to both workers, in turn.
  const agents = Array.from({ length: 4 }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
  t.teardown(() => { for (const agent of agents) agent.destroy() })
  for (let count = 1; count <= 60; count++) {
    const { status } = await send(service, '/testimonials', {
      method: 'POST',
      agent: agents[count % agents.length],
      headers: { authorization: `Bearer ${token}` },
      body: { name: 'Ada', batchYear: 2020, content: 'It was fun.' },
    })
    t.equal(status, 201)
    const lists = await Promise.all(agents.map(agent => send(service, '/testimonials?limit=1', { agent })))
    t.strictSame(lists.map(({ body }) => body.total), agents.map(() => count))
  }
  service.child.kill('SIGTERM')
  await service.ended
  const served = linesOf(service).filter(({ msg }) => msg === 'request completed').map(({ pid }) => pid)
  t.equal(new Set(served).size, 2)
})

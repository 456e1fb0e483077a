import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { connect, createServer, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'
import t, { type Test } from 'tap'

import { migrate } from '#lib/database/migrations.js'
import { createDatabase } from '../helper.ts'
import {
  dataDir, freePort, isListening, postgresOf, remaining, run, type Service, signalGroup, start, startService,
} from '../process.ts'

const MIGRATIONS = (await readdir('migrations')).length
const ADMIN = { ADMIN_EMAIL: 'admin@example.org', ADMIN_PASSWORD: 'correct horse' }
const ADA = { email: 'ada@example.org', password: 'correct horse', firstName: 'Ada', lastName: 'Lovelace' }

/** Sends a request over HTTP. */
async function send (service: Service, method: string, path: string, body?: unknown, token?: string) {
  const response = await fetch(service.url + path, {
    method,
    headers: {
      ...body === undefined ? {} : { 'content-type': 'application/json' },
      ...token ? { authorization: `Bearer ${token}` } : {},
    },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: await response.json() as any }
}

const register = (service: Service, account = ADA) => send(service, 'POST', '/auth/register', account)
const login = (service: Service, { email, password } = ADA) =>
  send(service, 'POST', '/auth/login', { email, password })
const me = (service: Service, token: string) => send(service, 'GET', '/auth/me', undefined, token)

function stop ({ child, ended }: Service, signal: NodeJS.Signals = 'SIGTERM') {
  child.kill(signal)
  return ended
}

function open (t: Test, url: string) {
  const sql = postgres(url, { max: 2 })
  t.teardown(() => sql.end())
  return sql
}

t.test('says where it listens, and serves', async t => {
  const service = await startService(t, { DATABASE_URL: await createDatabase(t) })
  t.match(service.url, /^http:\/\/127\.0\.0\.1:\d+$/)
  t.strictSame(await send(service, 'GET', '/readyz'), { status: 200, body: { message: 'Ready' } })
  t.equal((await register(service)).status, 201)
  const { status, body } = await login(service)
  t.equal(status, 200)
  t.match(await me(service, body.token), { status: 200, body: { user: { email: ADA.email, role: 'STUDENT' } } })
  const { code, stdout, stderr } = await stop(service)
  t.strictSame({ code, stderr }, { code: 0, stderr: '' })
  t.notMatch(stdout, ADA.password)
  t.notMatch(stdout, body.token)
})

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  t.test(`${signal}: answers what runs, refuses what comes, and ends with 0`, async t => {
    const DATABASE_URL = await createDatabase(t)
    const covered = signal === 'SIGTERM'
    const service = await startService(t, { DATABASE_URL, DATABASE_TIMEOUT: '60' }, { covered })
    const { hostname, port } = new URL(service.url)
    const sql = open(t, DATABASE_URL)

    // A kept-alive connection that is in the middle of its second request when the service is told to stop.
    const probe = connect(Number(port), hostname)
    const probed = text(probe)
    const request = `GET /readyz HTTP/1.1\r\nHost: ${hostname}\r\n`
    probe.write(`${request}\r\n${request}`)
    await once(probe, 'readable')

    let registered!: ReturnType<typeof register>
    await sql.begin(async tx => {
      // Until this is taken back, whoever registers the same email waits.
      await tx`
        INSERT INTO users (email, password, first_name, last_name) VALUES (${ADA.email}, '!', 'Ada', 'Lovelace')
      `
      registered = register(service)
      const waiting = () => sql`
        SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
      `
      while ((await waiting()).length === 0) await sleep(10)

      service.child.kill(signal)
      while (!service.messages().includes(`Stopping on ${signal}`)) await sleep(10)
      service.child.kill('SIGTERM')
      service.child.kill('SIGHUP')
      while (await isListening(Number(port))) await sleep(10)
      t.equal(service.child.exitCode, null, 'it waits for what runs')
      probe.write('\r\n')
      t.match(await probed, /^HTTP\/1\.1 200 [^]*"Ready"\}HTTP\/1\.1 503 [^]*\{"message":"Stopping"\}$/)
      await tx`DELETE FROM users`
    })
    t.match(await registered, { status: 201, body: { user: { email: ADA.email } } })
    const { code, stderr } = await service.ended
    t.strictSame({ code, stderr }, { code: 0, stderr: '' })
    t.equal((await sql`SELECT FROM users WHERE email = ${ADA.email}`).length, 1)
  })
}

const THROUGH_NPM: [what: string, signal: NodeJS.Signals, send: (service: Service) => unknown][] = [
  ['SIGTERM to npm', 'SIGTERM', ({ child }) => child.kill('SIGTERM')],
  // npm gets the signal, too, and passes it on.
  ['SIGTERM to all processes', 'SIGTERM', ({ child }) => signalGroup(child, 'SIGTERM')],
  ['Ctrl-C', 'SIGINT', ({ child }) => signalGroup(child, 'SIGINT')],
]
for (const [what, signal, send] of THROUGH_NPM) {
  t.test(`npm start, ${what}: serves for STOP_DELAY seconds, and npm ends with 0`, async t => {
    const variables = { DATABASE_URL: await createDatabase(t), STOP_DELAY: '1' }
    const service = await startService(t, variables, { npm: true })
    send(service)
    while (!service.messages().includes(`Stopping on ${signal}`)) await sleep(10)
    await sleep(300)
    t.equal((await fetch(`${service.url}/livez`)).status, 200)
    t.equal((await fetch(`${service.url}/readyz`)).status, 503)
    const { code } = await service.ended
    t.equal(code, 0)
    t.equal(service.messages().filter(message => message === `Stopping on ${signal}`).length, 1)
    t.equal(await isListening(Number(new URL(service.url).port)), false)
  })
}

for (const npm of [true, false]) {
  t.test(`${npm ? 'npm start, ' : ''}a second Ctrl-C ends it at once`, async t => {
    const variables = { DATABASE_URL: await createDatabase(t), STOP_DELAY: '3600' }
    const service = await startService(t, variables, { npm, group: true, covered: !npm })
    signalGroup(service.child, 'SIGINT')
    while (!service.messages().includes('Stopping on SIGINT')) await sleep(10)
    // As npm passes it on.
    service.child.kill('SIGINT')
    await sleep(1000)
    t.equal((await fetch(`${service.url}/livez`)).status, 200)
    signalGroup(service.child, 'SIGINT')
    const { code } = await service.ended
    t.equal(code, 1)
    t.equal(service.messages().at(-1), 'Ending at once on SIGINT')
  })
}

for (const group of [false, true]) {
  t.test(`a stop during the first start${group ? ', by Ctrl-C' : ''}: ends with 0, and leaves nothing`, async t => {
    const DATA_DIR = dataDir(t)
    const { child, ended } = start(t, 'dist/lib/server.js', { DATA_DIR, PORT: '0' }, { covered: true, group })
    const files = () => readdir(DATA_DIR, { recursive: true }).catch(() => [])
    // From here on the program that makes the database heeds the signal.
    while (!(await files()).some(file => /^postgres-\w+\/base\/1\/PG_VERSION$/.test(file))) await sleep(10)
    process.kill(group ? -child.pid! : child.pid!, 'SIGINT')
    const { code, stdout, stderr } = await ended
    t.strictSame({ code, stderr }, { code: 0, stderr: '' })
    t.match(stdout, 'Stopping on SIGINT')
    t.notMatch(stdout, /"level":[456]0/, 'nothing failed')
    t.strictSame(await postgresOf(DATA_DIR), [])
    t.strictSame((await files()).filter(file => /^postgres-(?!password$)/.test(file)), [], 'no half-made one either')
  })
}

t.test('a crash ends the process', async t => {
  const service = await startService(t, { DATABASE_URL: await createDatabase(t) })
  const { signal } = await stop(service, 'SIGSEGV')
  t.equal(signal, 'SIGSEGV')
})

t.test('the embedded database keeps everything, over a stop and over a kill', async t => {
  const DATA_DIR = dataDir(t)
  const first = await startService(t, { DATA_DIR, ...ADMIN })
  t.strictSame(first.messages().filter(message => !message.startsWith('Server listening')), [
    `Creating the embedded PostgreSQL in ${DATA_DIR}/postgres (first start only)`,
    `Database schema brought up to date: ${MIGRATIONS} migrations`,
    'Admin account created from ADMIN_EMAIL',
  ])
  const { status, body: { token } } = await register(first)
  t.equal(status, 201)

  const { port } = new URL(first.url)
  const refused = await run(t, 'dist/lib/server.js', { DATA_DIR, PORT: port })
  t.strictSame({ code: refused.code, stderr: refused.stderr }, {
    code: 1, stderr: `127.0.0.1:${port} is taken: stop what listens there, or set PORT\n`,
  }, 'a second service that cannot listen')
  t.equal((await login(first)).status, 200, 'does the first no harm')

  const before = await postgresOf(DATA_DIR)
  t.ok(before.length > 1)
  t.equal((await stop(first)).code, 0)
  t.strictSame(await remaining(before), [], 'nothing of the server is left')

  const second = await startService(t, { DATA_DIR, ...ADMIN })
  t.strictSame(second.messages().filter(message => !message.startsWith('Server listening')), [])
  t.equal((await login(second)).status, 200)
  t.equal((await me(second, token)).status, 200, 'tokens outlive a restart')
  const [server] = await postgresOf(DATA_DIR)
  t.equal((await stop(second, 'SIGKILL')).signal, 'SIGKILL')
  t.equal((await postgresOf(DATA_DIR))[0], server, 'the server is left behind')

  const third = await startService(t, { DATA_DIR })
  const processes = await postgresOf(DATA_DIR)
  t.equal(processes[0], server, 'and taken over')
  t.equal((await login(third)).status, 200)
  t.match(await me(third, token), { status: 200, body: { user: { email: ADA.email } } })
  t.equal((await login(third, { ...ADA, email: ADMIN.ADMIN_EMAIL })).body.user.role, 'ADMIN')
  t.equal((await stop(third)).code, 0)
  t.strictSame(await remaining(processes), [], 'and stopped in the end')
})

t.test('two that start at once on an empty database both come up, with one admin', async t => {
  const DATABASE_URL = await createDatabase(t, { migrated: false })
  const variables = { DATABASE_URL, MIGRATE_ON_START: 'true', ...ADMIN }
  const services = await Promise.all([startService(t, variables), startService(t, variables)])
  for (const service of services) {
    const { status, body } = await login(service, { ...ADA, email: ADMIN.ADMIN_EMAIL })
    t.equal(status, 200)
    t.equal(body.user.role, 'ADMIN')
    t.equal((await send(service, 'GET', '/readyz')).status, 200)
  }
  const messages = services.flatMap(service => service.messages())
  for (const once of [
    `Database schema brought up to date: ${MIGRATIONS} migrations`, 'Admin account created from ADMIN_EMAIL',
  ]) {
    t.equal(messages.filter(message => message === once).length, 1, once)
  }
  t.equal((await open(t, DATABASE_URL)`SELECT FROM users`).length, 1)
  t.strictSame((await Promise.all(services.map(service => stop(service)))).map(({ code }) => code), [0, 0])
})

t.test('what a person can mend is one line', async t => {
  const migrated = await createDatabase(t)
  const port = await freePort()
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port: PORT } = taken.address() as AddressInfo
  // A server that takes connections and never says a word.
  const silent = createServer().listen(0, '127.0.0.1')
  const sockets: Set<{ destroy (): unknown }> = new Set()
  silent.on('connection', socket => sockets.add(socket.on('error', () => {})))
  await once(silent, 'listening')
  const { port: mute } = silent.address() as AddressInfo
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    taken.close()
    silent.close()
  })

  const starts: [what: string, variables: NodeJS.Dict<string>, line: string | RegExp][] = [
    ['a wrong variable', { PORT: '65536' }, 'PORT must be a port number from 0 to 65535'],
    ['two wrong variables', { DATABASE_URL: 'here', LOG_LEVEL: 'loud' },
      /^(?=.*LOG_LEVEL must be fatal, error, )(?=.*DATABASE_URL must be a PostgreSQL address)/],
    ['production without its secret', { NODE_ENV: 'production', DATABASE_URL: migrated },
      'JWT_SECRET must be set in production: at least 32 characters'],
    ['an unreachable database', { DATABASE_URL: `postgres://user:hidden@127.0.0.1:${port}/name` },
      `Cannot reach the database at 127.0.0.1:${port}/name: connect ECONNREFUSED 127.0.0.1:${port}`],
    ['a database that does not answer', { DATABASE_URL: `postgres://127.0.0.1:${mute}/name`, DATABASE_TIMEOUT: '1' },
      `Cannot reach the database at 127.0.0.1:${mute}/name: no answer within 1 s`],
    ['a database that does not exist', { DATABASE_URL: Object.assign(new URL(migrated), { pathname: '/none' }).href },
      /^Cannot reach the database at [\d.:]+\/none: database "none" does not exist$/],
    ['a database without the schema', { DATABASE_URL: await createDatabase(t, { migrated: false }) },
      /^The database lacks \d+ migrations: run "npm run migrate" or start with MIGRATE_ON_START=true$/],
    ['a taken port', { DATABASE_URL: migrated, PORT: String(PORT) },
      `127.0.0.1:${PORT} is taken: stop what listens there, or set PORT`],
    ['a host that is nowhere', { DATABASE_URL: migrated, HOST: 'nowhere.invalid', PORT: '0' },
      /^Cannot listen on nowhere\.invalid:0: getaddrinfo E\w+ nowhere\.invalid$/],
  ]
  // A few at a time: each is a process.
  while (starts.length > 0) {
    await Promise.all(starts.splice(0, 3).map(async ([what, variables, line]) => {
      const covered = variables.PORT !== undefined
      const { code, stderr } = await run(t, 'dist/lib/server.js', variables, { covered })
      t.equal(code, 1, what)
      const [first, ...rest] = stderr.split('\n')
      if (typeof line === 'string') t.equal(first, line, what)
      else t.match(first, line, what)
      t.strictSame(rest, [''], `${what} is one line`)
    }))
  }
})

t.test('a defect ends the start with all that is known about it', async t => {
  const DATABASE_URL = await createDatabase(t, { migrated: false })
  await open(t, DATABASE_URL)`CREATE TABLE clubs ()`
  const { code, stderr } = await run(t, 'dist/lib/server.js', { DATABASE_URL, MIGRATE_ON_START: 'true' }, {
    covered: true,
  })
  t.equal(code, 1)
  t.match(stderr, /relation "clubs" already exists/)
  t.match(stderr, /\n {4}at /)
  t.strictSame((await migrate(DATABASE_URL, 'down')), [], 'and no step was taken')
})

t.test('an error that nobody catches is logged, and ends it with 1', async t => {
  const DATABASE_URL = await createDatabase(t)
  const prelude = `process.on('SIGWINCH', () => { throw new Error('provoked') })
    process.on('SIGCONT', () => { Promise.reject(new Error('provoked')) })`
  for (const signal of ['SIGWINCH', 'SIGCONT'] as const) {
    const service = await startService(t, { DATABASE_URL }, { prelude, covered: signal === 'SIGCONT' })
    const { code, stdout } = await stop(service, signal)
    t.equal(code, 1)
    const last = stdout.trim().split('\n').map(line => JSON.parse(line)).find(({ level }) => level === 60)
    t.match(last, { msg: 'Stopping after an error that nobody caught', err: { message: 'provoked', stack: /\n/ } })
  }
})

t.test('a request is in the log a second later', async t => {
  const service = await startService(t, { DATABASE_URL: await createDatabase(t) })
  await send(service, 'GET', '/clubs')
  const start = performance.now()
  while (!service.messages().includes('request completed') && performance.now() - start < 10_000) await sleep(50)
  t.ok(service.messages().includes('request completed'))
  t.equal((await stop(service)).code, 0)
})

const ENDS: [what: string, signal: NodeJS.Signals, code: number][] = [
  ['SIGTERM', 'SIGTERM', 0], ['SIGINT', 'SIGINT', 0], ['an error that nobody catches', 'SIGWINCH', 1],
]
for (const [what, signal, code] of ENDS) {
  t.test(`${what} loses no line of a request`, async t => {
    const prelude = "process.on('SIGWINCH', () => { throw new Error('provoked') })"
    const service = await startService(t, { DATABASE_URL: await createDatabase(t) }, { prelude })
    const received: number[] = []
    const clients = Array.from({ length: 8 }, async () => {
      for (let request = 0; request < 2000; request++) {
        const response = await fetch(`${service.url}/clubs`)
        await response.text()
        received.push(response.status)
      }
    })
    while (received.length < 100) await sleep(5)
    const ended = stop(service, signal)
    await Promise.allSettled(clients)
    t.equal((await ended).code, code)
    const lines = service.messages().filter(message => message === 'request completed')
    // The last response to each client may have been logged and not received.
    const { length } = received
    t.ok(lines.length >= length && lines.length <= length + clients.length, `${lines.length} of ${length}`)
  })
}

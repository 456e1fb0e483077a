import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'
import t, { type Test } from 'tap'

import { migrate } from '#lib/database/migrations.js'
import { createDatabase } from '../helper.ts'
import { ACCOUNT } from '../fixtures.ts'
import { CLIENT } from '../provider.ts'
import {
  dataDir, freePort, postgresOf, redirectImport, remaining, run, type Service, startService, stop,
} from '../process.ts'

const MIGRATIONS = (await readdir('migrations')).length
const ADMIN = { ADMIN_EMAIL: 'admin@example.org', ADMIN_PASSWORD: 'correct horse' }

/** Sends a JSON request. */
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

const register = (service: Service, account = ACCOUNT) => send(service, 'POST', '/auth/register', account)
const login = (service: Service, { email, password }: Pick<typeof ACCOUNT, 'email' | 'password'> = ACCOUNT) =>
  send(service, 'POST', '/auth/login', { email, password })
const me = (service: Service, token: string) => send(service, 'GET', '/auth/me', undefined, token)

function open (t: Test, url: string) {
  const sql = postgres(url, { max: 2 })
  t.teardown(() => sql.end())
  return sql
}

t.test('logs its address, and serves', async t => {
  const service = await startService(t, { DATABASE_URL: await createDatabase() })
  t.match(service.url, /^http:\/\/127\.0\.0\.1:\d+$/)
  t.strictSame(await send(service, 'GET', '/readyz'), { status: 200, body: { message: 'Ready' } })
  t.equal((await register(service)).status, 201)
  const { status, body } = await login(service)
  t.equal(status, 200)
  t.match(await me(service, body.token), { status: 200, body: { user: { email: ACCOUNT.email, role: 'STUDENT' } } })
  const { code, stdout, stderr } = await stop(service)
  t.strictSame({ code, stderr }, { code: 0, stderr: '' })
  t.notMatch(stdout, ACCOUNT.password)
  t.notMatch(stdout, body.token)
})

/** Whether a message of the start names no address of the service. */
const isNoAddress = (message: string) => !/^(Server listening|The API is described) at /.test(message)

t.test('the embedded database keeps its data over a stop', async t => {
  const DATA_DIR = dataDir(t)
  const first = await startService(t, { DATA_DIR, ...ADMIN })
  t.strictSame(first.messages().filter(isNoAddress), [
    `Creating the embedded PostgreSQL in ${DATA_DIR}/postgres (first start only)`,
    `Applied migrations: ${MIGRATIONS}`,
    'Admin account created from ADMIN_EMAIL',
  ])
  const { status, body: { token } } = await register(first)
  t.equal(status, 201)

  const { port } = new URL(first.url)
  const refused = await run(t, 'dist/lib/server.js', { DATA_DIR, PORT: port })
  t.strictSame({ code: refused.code, stderr: refused.stderr }, {
    code: 1, stderr: `127.0.0.1:${port} is in use. Stop the program that listens there, or set PORT.\n`,
  }, 'a second service that cannot listen')
  t.equal((await login(first)).status, 200, 'does not affect the first')

  const before = await postgresOf(DATA_DIR)
  t.ok(before.length > 1)
  t.equal((await stop(first)).code, 0)
  t.strictSame(await remaining(before), [], 'the server is stopped')

  const second = await startService(t, { DATA_DIR, ...ADMIN })
  t.strictSame(second.messages().filter(isNoAddress), [])
  t.equal((await login(second)).status, 200)
  t.equal((await me(second, token)).status, 200, 'tokens survive a restart')
  t.equal((await login(second, { ...ACCOUNT, email: ADMIN.ADMIN_EMAIL })).body.user.role, 'ADMIN')
  t.equal((await stop(second)).code, 0)
})

t.test('a configuration error is one line', async t => {
  const migrated = await createDatabase()
  const port = await freePort()
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port: PORT } = taken.address() as AddressInfo
  // A server that accepts connections and never responds.
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
    ['an unreachable database', { DATABASE_URL: `postgres://user:hidden@127.0.0.1:${port}/name` },
      `Cannot reach the database at 127.0.0.1:${port}/name: connect ECONNREFUSED 127.0.0.1:${port}`],
    ['a database that does not answer', { DATABASE_URL: `postgres://127.0.0.1:${mute}/name`, DATABASE_TIMEOUT: '1' },
      `Cannot reach the database at 127.0.0.1:${mute}/name: write CONNECT_TIMEOUT 127.0.0.1:${mute}`],
    ['a database that does not exist', { DATABASE_URL: Object.assign(new URL(migrated), { pathname: '/none' }).href },
      /^Cannot reach the database at [\d.:]+\/none: database "none" does not exist$/],
    ['a taken port', { DATABASE_URL: migrated, PORT: String(PORT) },
      `127.0.0.1:${PORT} is in use. Stop the program that listens there, or set PORT.`],
    ['a host that is nowhere', { DATABASE_URL: migrated, HOST: 'nowhere.invalid', PORT: '0' },
      /^Cannot listen on nowhere\.invalid:0: getaddrinfo E\w+ nowhere\.invalid$/],
  ]
  // A few at a time, because each is a process.
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

t.test('a bug during the start is reported with its stack', async t => {
  const DATABASE_URL = await createDatabase({ migrated: false })
  await open(t, DATABASE_URL)`CREATE TABLE clubs ()`
  const { code, stderr } = await run(t, 'dist/lib/server.js', { DATABASE_URL, MIGRATE_ON_START: 'true' }, {
    covered: true,
  })
  t.equal(code, 1)
  t.match(stderr, /relation "clubs" already exists/)
  t.match(stderr, /\n {4}at /)
  t.strictSame(await migrate(DATABASE_URL, 'down'), ['20261120000001000_ids-and-timestamps'], 'the one before it stays')
})

t.test('a request is in the log within a second', async t => {
  const service = await startService(t, { DATABASE_URL: await createDatabase() })
  await send(service, 'GET', '/clubs')
  const start = performance.now()
  while (!service.messages().includes('request completed') && performance.now() - start < 10_000) await sleep(50)
  t.ok(service.messages().includes('request completed'))
  t.equal((await stop(service)).code, 0)
})

t.test('1,000 clients connect while the event loop is busy', {
  skip: process.platform !== 'linux' && 'other systems take fewer, and repeat sooner',
}, async t => {
  const service = await startService(t, { DATABASE_URL: await createDatabase() })
  service.child.kill('SIGSTOP')
  const sockets = Array.from({ length: 1000 }, () => connect(Number(new URL(service.url).port), '127.0.0.1'))
  t.teardown(() => { for (const socket of sockets) socket.destroy() })
  await Promise.all(sockets.map(socket => once(socket, 'connect')))
  service.child.kill('SIGCONT')
  t.equal((await send(service, 'GET', '/livez')).status, 200)
})

t.test('a date without a time zone is in UTC, in any time zone', async t => {
  const DATABASE_URL = await createDatabase()
  const [event] = await open(t, DATABASE_URL)`
    WITH club AS (INSERT INTO clubs (name, description) VALUES ('Chess Club', 'Chess') RETURNING id)
    INSERT INTO events (title, description, date, club_id) SELECT 'Open day', 'All day', now(), id FROM club
    RETURNING id
  `
  const service = await startService(t, { DATABASE_URL, TZ: 'America/Los_Angeles', ...ADMIN })
  const { body: { token } } = await login(service, { email: ADMIN.ADMIN_EMAIL, password: ADMIN.ADMIN_PASSWORD })
  t.match(await send(service, 'PUT', `/events/${event!.id}`, { data: '2030-05-01T18:00' }, token),
    { status: 200, body: { event: { date: '2030-05-01T18:00:00.000Z' } } })
})

t.test('What a sign-in with the provider needs is loaded at the start, if one is configured', async t => {
  const content = "throw new Error('Cannot find package'); export default 0"
  const missing = join(t.testdir({ 'missing.mjs': content }), 'missing.mjs')
  const prelude = redirectImport('@fastify/oauth2', missing, 'module')
  const DATABASE_URL = await createDatabase()
  t.match(await run(t, 'dist/lib/server.js', { DATABASE_URL, ...CLIENT }, { prelude }),
    { code: 1, stderr: /Cannot find package/ })
  await startService(t, { DATABASE_URL }, { prelude })
})

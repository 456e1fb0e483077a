// How the service ends: by a signal to itself or to the process group of `npm start`, or by a bug.
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'
import t from 'tap'

import { createDatabase, untilBlocked } from '../helper.ts'
import { dataDir, isListening, postgresOf, type Service, signalGroup, start, startService, stop } from '../process.ts'

const EMAIL = 'ada@example.org'

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  t.test(`${signal}: completes running requests, rejects new ones, and exits with 0`, async t => {
    const DATABASE_URL = await createDatabase()
    const covered = signal === 'SIGTERM'
    const service = await startService(t, { DATABASE_URL, DATABASE_TIMEOUT: '60' }, { covered })
    const { hostname, port } = new URL(service.url)
    const sql = postgres(DATABASE_URL, { max: 2 })
    t.teardown(() => sql.end())

    // A kept-alive connection whose second request is incomplete when the signal arrives.
    const probe = connect(Number(port), hostname)
    const probed = text(probe)
    const request = `GET /readyz HTTP/1.1\r\nHost: ${hostname}\r\n`
    probe.write(`${request}\r\n${request}`)
    await once(probe, 'readable')

    let registered!: Promise<Response>
    await sql.begin(async tx => {
      // Blocks registrations with the same email until it is rolled back or deleted.
      await tx`
        INSERT INTO users (email, password, first_name, last_name) VALUES (${EMAIL}, '!', 'Ada', 'Lovelace')
      `
      registered = fetch(`${service.url}/auth/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ email: EMAIL, password: 'correct horse', firstName: 'Ada', lastName: 'Lovelace' }),
      })
      await untilBlocked(sql)

      service.child.kill(signal)
      while (!service.messages().includes(`Stopping on ${signal}`)) await sleep(10)
      service.child.kill('SIGTERM')
      service.child.kill('SIGHUP')
      while (await isListening(Number(port))) await sleep(10)
      t.equal(service.child.exitCode, null, 'it waits for running requests')
      probe.write('\r\n')
      t.match(await probed, /^HTTP\/1\.1 200 [^]*"Ready"\}HTTP\/1\.1 503 [^]*\{"message":"Stopping"\}$/)
      await tx`DELETE FROM users`
    })
    t.equal((await registered).status, 201)
    t.match(await (await registered).json(), { user: { email: EMAIL } })
    const { code, stderr } = await service.ended
    t.strictSame({ code, stderr }, { code: 0, stderr: '' })
    t.equal((await sql`SELECT FROM users WHERE email = ${EMAIL}`).length, 1)
  })
}

const THROUGH_NPM: [what: string, signal: NodeJS.Signals, send: (service: Service) => unknown][] = [
  ['SIGTERM to npm', 'SIGTERM', ({ child }) => child.kill('SIGTERM')],
  // npm also gets the signal, and forwards it.
  ['Ctrl-C', 'SIGINT', ({ child }) => signalGroup(child, 'SIGINT')],
]
for (const [what, signal, send] of THROUGH_NPM) {
  t.test(`npm start, ${what}: serves for STOP_DELAY seconds, and npm exits with 0`, async t => {
    const variables = { DATABASE_URL: await createDatabase(), STOP_DELAY: '3' }
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
  t.test(`${npm ? 'npm start, ' : ''}a second Ctrl-C exits at once`, async t => {
    const variables = { DATABASE_URL: await createDatabase(), STOP_DELAY: '3600' }
    // npm forwards it. Without npm, the service sends it to itself as soon as it has it.
    const prelude = "process.once('SIGINT', () => setImmediate(() => process.kill(process.pid, 'SIGINT')))"
    const service = await startService(t, variables, { npm, group: true, ...!npm && { prelude, covered: true } })
    signalGroup(service.child, 'SIGINT')
    while (!service.messages().includes('Stopping on SIGINT')) await sleep(10)
    await sleep(1000)
    t.equal((await fetch(`${service.url}/livez`)).status, 200)
    signalGroup(service.child, 'SIGINT')
    const { code } = await service.ended
    t.equal(code, 1)
    t.equal(service.messages().at(-1), 'Exiting at once on a second SIGINT')
  })
}

for (const group of [false, true]) {
  t.test(`a stop during the first start${group ? ', by Ctrl-C' : ''}: exits with 0, and leaves no data`, async t => {
    const DATA_DIR = dataDir(t)
    const { child, ended } = start(t, 'dist/lib/server.js', { DATA_DIR, PORT: '0' }, { covered: true, group })
    const files = () => readdir(DATA_DIR, { recursive: true }).catch(() => [])
    // From here on initdb handles the signal.
    while (!(await files()).some(file => /^postgres-\w+\/base\/1\/PG_VERSION$/.test(file))) await sleep(10)
    process.kill(group ? -child.pid! : child.pid!, 'SIGINT')
    const { code, stdout, stderr } = await ended
    t.strictSame({ code, stderr }, { code: 0, stderr: '' })
    t.match(stdout, 'Stopping on SIGINT')
    t.notMatch(stdout, /"level":[456]0/, 'no errors')
    t.strictSame(await postgresOf(DATA_DIR), [])
    t.strictSame((await files()).filter(file => /^postgres-(?!password$)/.test(file)), [], 'no partial one either')
  })
}

t.test('an uncaught error is logged, and exits with 1', async t => {
  const DATABASE_URL = await createDatabase()
  const prelude = `process.on('SIGWINCH', () => { throw new Error('provoked') })
    process.on('SIGCONT', () => { Promise.reject(new Error('provoked')) })`
  for (const signal of ['SIGWINCH', 'SIGCONT'] as const) {
    const service = await startService(t, { DATABASE_URL }, { prelude, covered: signal === 'SIGCONT' })
    const { code, stdout } = await stop(service, signal)
    t.equal(code, 1)
    const last = stdout.trim().split('\n').map(line => JSON.parse(line)).find(({ level }) => level === 60)
    t.match(last, { msg: 'Stopping after an uncaught error', err: { message: 'provoked', stack: /\n/ } })
  }
})

const ENDS: [what: string, signal: NodeJS.Signals, code: number][] = [
  ['SIGTERM', 'SIGTERM', 0], ['an uncaught error', 'SIGWINCH', 1],
]
for (const [what, signal, code] of ENDS) {
  t.test(`${what} loses no line of the log`, async t => {
    const prelude = "process.on('SIGWINCH', () => { throw new Error('provoked') })"
    const service = await startService(t, { DATABASE_URL: await createDatabase() }, { prelude })
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
    // The last response to each client may have been logged, but not received.
    const { length } = received
    t.ok(lines.length >= length && lines.length <= length + clients.length, `${lines.length} of ${length}`)
  })
}

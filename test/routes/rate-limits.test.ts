import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import argon2 from 'argon2'
import type { FastifyInstance } from 'fastify'

import { consume } from '#lib/auth/rate-limits.js'
import { hashPassword } from '#lib/auth/passwords.js'
import { assertResponse } from '../assertions.ts'
import { HASH, PASSWORD } from '../fixtures.ts'
import { build, createDatabase, MAIL, person, untilBlocked } from '../helper.ts'
import t, { type Test } from '../suite.ts'

const FAILURES = 'Too many failed sign-ins, please try again later'
const REGISTRATIONS = 'Too many registrations, please try again later'

/** Instances on one database. */
const DATABASE_URL = await createDatabase()
const limited = { DATABASE_URL, SIGN_IN_ATTEMPTS: '3', LIMIT_WINDOW: '60', REGISTRATIONS_PER_NETWORK: '3' }
const app = await build(t, limited)
const other = await build(t, limited)
const byDefault = await build(t, { DATABASE_URL })
const { sql } = app

let networks = 0
/** An address that is new to the service. */
const newAddress = () => `192.0.2.${++networks}`
const ADDRESS = newAddress()
const account = async () => (await person(app, 'STUDENT', { password: HASH })).email
const stranger = () => `${randomUUID()}@example.org`

interface From {
  address?: string
  headers?: Record<string, string>
  via?: FastifyInstance
}

const signIn = (email: string, password: string, { address = ADDRESS, headers = {}, via = app }: From = {}) =>
  via.inject({ method: 'POST', url: '/auth/login', remoteAddress: address, headers, payload: { email, password } })

const guess = (email: string, from?: From) => signIn(email, 'wrong horse', from)

const register = ({ address = ADDRESS, via = app }: From = {}, email = stranger()) => via.inject({
  method: 'POST',
  url: '/auth/register',
  remoteAddress: address,
  payload: { email, password: PASSWORD, firstName: 'Ada', lastName: 'Lovelace' },
})

type Response = Awaited<ReturnType<typeof signIn>>

/** Sends attempts one after the other. Returns the statuses. */
async function statuses (count: number, attempt: (n: number) => Promise<Response>) {
  const seen: number[] = []
  for (let n = 0; n < count; n++) seen.push((await attempt(n)).statusCode)
  return seen
}

const guesses = (count: number, email: string, from?: From) => statuses(count, () => guess(email, from))

/** Sends attempts concurrently. Returns the statuses, sorted. */
async function atOnce (count: number, attempt: (n: number) => Promise<Response>) {
  const responses = await Promise.all(Array.from({ length: count }, (_, n) => attempt(n)))
  return responses.map(({ statusCode }) => statusCode).sort()
}

const times = (count: number, status: number) => Array<number>(count).fill(status)

/** The rows whose key begins with this email or network. */
const stored = async (start: string) => [...await sql`
  SELECT name, uses, xmin::text, ends_at FROM rate_limits WHERE split_part(key, ' ', 1) = ${start} ORDER BY name
`]

/** Lets some seconds of the windows of this email or network pass. */
const pass = (seconds: number, start: string) => sql`
  UPDATE rate_limits SET ends_at = ends_at - make_interval(secs => ${seconds}) WHERE split_part(key, ' ', 1) = ${start}
`

/** Asserts a 429 with a Retry-After of at least and at most so many seconds. */
function waits (t: Test, response: Response, message: string, [least, most] = [50, 60]) {
  assertResponse(t, response, 429, { message })
  const retryAfter = String(response.headers['retry-after'])
  t.match(retryAfter, /^[1-9]\d*$/)
  t.ok(Number(retryAfter) >= least! && Number(retryAfter) <= most!, `Retry-After: ${retryAfter}`)
}

t.test('After 20 failures in 15 minutes, the correct password also has to wait', async t => {
  const email = await account()
  t.strictSame(await guesses(20, email, { via: byDefault }), times(20, 401))
  for (const password of ['wrong horse', PASSWORD]) {
    waits(t, await signIn(email, password, { via: byDefault }), FAILURES, [800, 900])
  }
  await pass(900, email)
  t.equal((await signIn(email, PASSWORD, { via: byDefault })).statusCode, 200)
})

t.test('A sign-in past the limit neither verifies the password nor writes', async t => {
  for (const email of [await account(), stranger()]) {
    await guesses(3, email)
    const before = await stored(email)
    t.match(before, [{ name: 'failed-sign-ins-for-account', uses: 3 }])
    await sql`UPDATE users SET password = 'what argon2 throws at' WHERE email = ${email}`
    waits(t, await signIn(email, PASSWORD), FAILURES)
    waits(t, await guess(email), FAILURES)
    t.strictSame(await stored(email), before)
  }
})

t.test('Wrong passwords of a network over all accounts are limited, for those who are new there', async t => {
  const via = await build(t, { DATABASE_URL, LIMIT_WINDOW: '60', SIGN_IN_ATTEMPTS_PER_NETWORK: '5' })
  const from = { via, address: newAddress() }
  const [known, unknown] = [await account(), await account()]
  t.equal((await signIn(known, PASSWORD, from)).statusCode, 200)
  const [user] = await sql`SELECT id FROM users WHERE email = ${known}`
  const remembered = async () => [...await sql`
    SELECT key, ends_at FROM rate_limits WHERE name = 'known-networks' AND key LIKE ${`${user!.id} %`}
  `]
  const first = await remembered()
  t.equal(first.length, 1)
  t.notMatch(first[0]!.key, from.address, 'only its hash')
  t.equal((await signIn(known, PASSWORD, from)).statusCode, 200)
  t.strictSame(await remembered(), first, 'a later sign-in does not write')
  t.strictSame(await statuses(5, async n => guess(n < 3 ? await account() : stranger(), from)), times(5, 401))
  for (const email of [unknown, stranger()]) {
    for (const password of [PASSWORD, 'wrong horse']) waits(t, await signIn(email, password, from), FAILURES)
  }
  // The status of a wrong password must not tell whether there is an account.
  waits(t, await guess(known, from), FAILURES)
  t.strictSame(await observe(known, from), await observe(stranger(), from))
  t.equal((await signIn(known, PASSWORD, from)).statusCode, 200)
  t.equal((await signIn(unknown, PASSWORD, { via, address: newAddress() })).statusCode, 200, 'from elsewhere')
  const off = await build(t, { DATABASE_URL, SIGN_IN_ATTEMPTS_PER_NETWORK: '0' })
  t.equal((await signIn(unknown, PASSWORD, { ...from, via: off })).statusCode, 200, 'without the limit')
})

t.test('The window begins with the first failure', async t => {
  const email = await account()
  t.strictSame(await guesses(1, email), [401])
  await pass(40, email)
  t.strictSame(await guesses(2, email), [401, 401])
  waits(t, await guess(email), FAILURES, [1, 20])
  await pass(20, email)
  t.strictSame(await guesses(4, email), [401, 401, 401, 429])
  waits(t, await guess(email), FAILURES)
})

t.test('A success forgets the failures', async t => {
  const email = await account()
  await guesses(2, email)
  t.equal((await signIn(email, PASSWORD)).statusCode, 200)
  t.strictSame(await stored(email), [])
  t.strictSame(await guesses(4, email), [401, 401, 401, 429])
})

t.test('DELETE /me limits wrong passwords', async t => {
  const ada = await person(app, 'STUDENT', { password: HASH })
  const remove = (currentPassword: string) => ada.inject('DELETE', '/me', { currentPassword })
  t.strictSame(await statuses(3, () => remove('wrong')), [401, 401, 401])
  waits(t, await remove(PASSWORD), FAILURES)
})

t.test('Other addresses and other accounts do not wait', async t => {
  const [ada, eve] = [await account(), await account()]
  t.strictSame(await guesses(4, ada), [401, 401, 401, 429])
  t.equal((await signIn(ada, PASSWORD, { address: newAddress() })).statusCode, 200)
  t.equal((await signIn(eve, PASSWORD)).statusCode, 200)
  t.equal((await guess(ada)).statusCode, 429, 'a success from elsewhere does not reset it')
  t.equal((await guess(ada.toUpperCase())).statusCode, 401, 'emails are case-sensitive')
})

t.test('Failures from a /48 count together', async t => {
  const email = await account()
  const from = (subnet: string) => ({ address: `2001:db8:1:${subnet}::1` })
  t.strictSame(await statuses(5, n => guess(email, from(`${n}`))), [401, 401, 401, 429, 429])
  t.equal((await signIn(email, PASSWORD, { address: '2001:db8:2::1' })).statusCode, 200)
})

t.test('Failures of others in a network do not keep anyone out', async t => {
  const address = newAddress()
  const [known, unknown] = [await account(), await account()]
  t.equal((await signIn(known, PASSWORD, { address })).statusCode, 200)
  const { restore } = t.intercept(argon2, 'verify', { value: async () => false })
  t.strictSame(await atOnce(60, () => guess(stranger(), { address, via: byDefault })), times(60, 401))
  restore()
  for (const email of [known, unknown]) t.equal((await signIn(email, PASSWORD, { address })).statusCode, 200)
})

t.test('Of many concurrent attempts at several instances, no more than the limit are told', async t => {
  for (const email of [await account(), stranger()]) {
    const seen = await atOnce(20, n => guess(email, { via: n % 2 ? app : other }))
    t.strictSame(seen, [...times(3, 401), ...times(17, 429)])
  }
  const address = newAddress()
  const seen = await atOnce(12, n => register({ address, via: n % 2 ? app : other }))
  t.strictSame(seen, [...times(3, 201), ...times(9, 429)])
})

const addFailures = (email: string, on = sql) => on`
  INSERT INTO rate_limits
  VALUES ('failed-sign-ins-for-account', ${`${email} ${ADDRESS}`}, 3, now() + interval '1 minute')
`

t.test('An attempt that waits for the failures of others has to wait when they reach the limit', async t => {
  const email = await account()
  const { response } = await sql.begin(async transaction => {
    await addFailures(email, transaction as unknown as typeof sql)
    const response = [guess(email)]
    await untilBlocked(sql)
    return { response }
  })
  waits(t, await response[0]!, FAILURES)
  t.match(await stored(email), [{ uses: 3 }])
})

t.test('A sign-in has to wait if others reach the limit during it', async t => {
  for (const password of ['wrong horse', PASSWORD]) {
    const email = await account()
    // Waits in the queue behind hashes that end after the others have reached the limit.
    let release!: (hash: string) => void
    const released = new Promise<string>(resolve => { release = resolve })
    const restore = t.intercept(argon2, 'hash', { value: () => released }).restore
    const client = { network: '192.0.2.1', isWanted: () => true }
    const { passwords } = app.queues
    const queue = Array.from({ length: 30 }, () => passwords.run(client, () => hashPassword(PASSWORD)))
    const response = signIn(email, password)
    while (passwords.waiting + passwords.running < 31) await sleep(1)
    await addFailures(email)
    release(HASH)
    waits(t, await response, FAILURES)
    t.match(await stored(email), [{ uses: 3 }])
    await Promise.all(queue)
    restore()
  }
})

/** The responses to four attempts, and the statements that they cause. */
async function observe (email: string, from?: From) {
  const { options } = (from?.via ?? app).sql
  const asked: string[] = []
  Object.assign(options, {
    // The service looks for draws every five seconds.
    debug (_connection: number, query: string) { if (!query.includes('event_details')) asked.push(query) },
  })
  const seen = []
  for (let n = 0; n < 4; n++) {
    const { statusCode, body, headers } = await guess(email, from)
    seen.push([statusCode, body, Object.keys(headers)])
  }
  Object.assign(options, { debug: false })
  return { asked, seen }
}

t.test('An unknown email is counted like a known one, with the same statements', async t => {
  const known = await observe(await account())
  t.strictSame(known.seen.map(([status]) => status), [401, 401, 401, 429])
  t.equal(known.asked.length, 3 * 4 + 2)
  t.strictSame(await observe(stranger()), known)
  t.strictSame(await observe((await person(app)).email), known, 'an account without a password behaves alike')
})

t.test('Invalid requests are not counted', async t => {
  const email = await account()
  assertResponse(t, await signIn(email, ''), 400, { message: 'All fields are required' })
  t.equal((await signIn(email, 'nul\u0000')).statusCode, 400)
  t.strictSame(await stored(email), [])
  const address = newAddress()
  t.strictSame(await statuses(4, () => register({ address }, 'no email')), times(4, 400))
  t.strictSame(await stored(address), [])
})

t.test('A password that cannot be verified is not counted', async t => {
  const email = await account()
  await guesses(2, email)
  await sql`UPDATE users SET password = 'what argon2 throws at' WHERE email = ${email}`
  for (let n = 0; n < 3; n++) assertResponse(t, await signIn(email, PASSWORD), 500, { message: 'Login failed' })
  t.match(await stored(email), [{ uses: 2 }])
})

t.test('A sign-in that cannot be counted fails, also with the right password', async t => {
  const email = await account()
  await sql`ALTER TABLE rate_limits RENAME TO elsewhere`
  assertResponse(t, await signIn(email, PASSWORD), 500, { message: 'Login failed' })
  assertResponse(t, await guess(email), 500, { message: 'Login failed' })
  await sql`ALTER TABLE elsewhere RENAME TO rate_limits`
})

t.test('The right password signs in when its failures cannot be forgotten', async t => {
  const email = await account()
  await guesses(1, email)
  await sql.unsafe(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
    CREATE TRIGGER refuse BEFORE DELETE ON rate_limits FOR EACH ROW EXECUTE FUNCTION refuse()
  `)
  t.equal((await signIn(email, PASSWORD)).statusCode, 200)
  await sql.unsafe('DROP FUNCTION refuse CASCADE')
})

t.test('A registration whose email cannot be counted or written succeeds', async t => {
  const via = await build(t, { ...MAIL, DATABASE_URL })
  for (const table of ['rate_limits', 'emails']) {
    const email = stranger()
    await via.sql.unsafe(`ALTER TABLE ${table} RENAME TO elsewhere`)
    t.equal((await register({ via }, email)).statusCode, 201, table)
    t.equal((await register({ via }, email)).statusCode, 409, table)
    await via.sql.unsafe(`ALTER TABLE elsewhere RENAME TO ${table}`)
  }
})

t.test('SIGN_IN_ATTEMPTS=0 turns counting off', async t => {
  const via = await build(t, { ...limited, SIGN_IN_ATTEMPTS: '0' })
  const email = await account()
  t.strictSame(await guesses(6, email, { via }), times(6, 401))
  t.strictSame(await stored(email), [])
})

t.test('REGISTRATIONS_PER_NETWORK counts at all instances, also those with an existing email', async t => {
  const address = newAddress()
  t.equal((await register({ address })).statusCode, 201)
  t.equal((await register({ address, via: other }, await account())).statusCode, 409)
  t.equal((await register({ address })).statusCode, 201)
  waits(t, await register({ address }), REGISTRATIONS)
  waits(t, await register({ address, via: other }), REGISTRATIONS)
  t.equal((await register({ address: newAddress() })).statusCode, 201, 'others do not wait')
  t.equal((await register({ address, via: byDefault })).statusCode, 201, 'by default there is no limit')
})

t.test('Each use deletes ten rows that are past, without waiting for locks', async t => {
  await sql`TRUNCATE rate_limits`
  await sql`
    INSERT INTO rate_limits
    SELECT 'registrations', 'past' || n, 1, now() - n * interval '1 second' FROM generate_series(1, 25) AS n
  `
  await sql`INSERT INTO rate_limits VALUES ('registrations', 'present', 1, now() + interval '30 seconds')`
  const left = async () => (await sql`SELECT FROM rate_limits WHERE key LIKE 'past%'`).length
  const use = (key: string) => consume(sql, { name: 'registrations', key, max: 9, message: '' }, 60)
  await sql.begin(async transaction => {
    await transaction`SELECT FROM rate_limits WHERE key = 'past1' FOR UPDATE`
    await use('one')
    t.equal(await left(), 15)
    await use('one')
    t.equal(await left(), 5)
    await use('one')
    t.equal(await left(), 1, 'except the locked one')
  })
  await use('past1')
  t.match(await stored('past1'), [{ uses: 1 }], 'a row that is past begins again')
  t.equal((await stored('present')).length, 1)
})

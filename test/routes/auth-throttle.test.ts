import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import argon2 from 'argon2'
import type { FastifyInstance } from 'fastify'
import type { TransactionSql } from 'postgres'

import { hashingStats, hashPassword } from '#lib/auth/passwords.js'
import type { Sql } from '#lib/database/client.js'
import { assertResponse } from '../assertions.ts'
import { build, createDatabase, person, untilBlocked } from '../helper.ts'
import t, { type Test } from '../suite.ts'

const PASSWORD = 'correct horse'
/** The cheapest hash: these tests count attempts. */
const HASH = await argon2.hash(PASSWORD, { memoryCost: 1024, timeCost: 2, parallelism: 1 })
const ADDRESS = '192.0.2.1'
const WAIT = 'Too many failed sign-ins, please try again later'

/** Instances on one database; three failures in a minute throttle a pair on most of them. */
const DATABASE_URL = await createDatabase(t)
const limit = { DATABASE_URL, SIGN_IN_ATTEMPTS: '3', SIGN_IN_WINDOW: '60' }
const app = await build(t, limit)
const other = await build(t, limit)
const byDefault = await build(t, { DATABASE_URL })
const behindProxy = await build(t, { ...limit, TRUST_PROXY: '10.0.0.0/8' })
const { sql } = app

const account = async () => (await person(app, 'STUDENT', { password: HASH })).email
const stranger = () => `${randomUUID()}@example.org`

interface From {
  address?: string
  forwarded?: string
  via?: FastifyInstance
}

function signIn (email: string, password: string, { address = ADDRESS, forwarded, via = app }: From = {}) {
  return via.inject({
    method: 'POST',
    url: '/auth/login',
    remoteAddress: address,
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    payload: { email, password },
  })
}

const guess = (email: string, from?: From) => signIn(email, 'wrong horse', from)

/** Sends wrong passwords one after the other. Returns the statuses. */
async function guesses (count: number, email: string, from?: From) {
  const statuses: number[] = []
  for (let i = 0; i < count; i++) statuses.push((await guess(email, from)).statusCode)
  return statuses
}

const NAME = 'failed-sign-ins-for-account'

/** Stores so many failures for an account. */
const addFailures = (email: string, count: number, on: Sql | TransactionSql = sql) => on`
  INSERT INTO rate_limits VALUES (${NAME}, ${`${email} ${ADDRESS}`}, array_fill(now(), ARRAY[${count}::integer]))
`

/** The rows of this email, for all networks. */
const ofEmail = (email: string) => sql`name = ${NAME} AND starts_with(key, ${`${email} `})`

/** Ages the failures of this email by some seconds. */
async function pass (seconds: number, email: string) {
  await sql`
    UPDATE rate_limits SET times = ARRAY(
      SELECT time - make_interval(secs => ${seconds})
      FROM unnest(times) WITH ORDINALITY AS failures (time, position) ORDER BY position
    ) WHERE ${ofEmail(email)}
  `
}

const rows = async (email: string) => [...await sql`
  SELECT *, xmin::text, cardinality(times) AS failures FROM rate_limits WHERE ${ofEmail(email)}
`]

/** Asserts a 429 whose Retry-After ends when the last three failures no longer are within a minute. */
async function waits (t: Test, email: string, attempt: () => ReturnType<typeof signIn>) {
  const seconds = async () => (await sql<{ seconds: number }[]>`
    SELECT ceil(extract(epoch FROM times[3] + interval '1 minute' - now()))::integer AS seconds
    FROM rate_limits WHERE ${ofEmail(email)}
  `)[0]!.seconds
  const before = await seconds()
  const response = await attempt()
  assertResponse(t, response, 429, { message: WAIT })
  const retryAfter = String(response.headers['retry-after'])
  t.match(retryAfter, /^\d+$/)
  t.ok(await seconds() <= Number(retryAfter) && Number(retryAfter) <= before, `Retry-After: ${retryAfter}`)
  return Number(retryAfter)
}

t.test('After 20 failures in 15 minutes the right password is throttled, too', async t => {
  const via = byDefault
  const email = await account()
  t.strictSame(await guesses(20, email, { via }), Array(20).fill(401))
  for (const password of ['wrong horse', PASSWORD]) {
    const response = await signIn(email, password, { via })
    assertResponse(t, response, 429, { message: WAIT })
    const retryAfter = Number(response.headers['retry-after'])
    t.ok(retryAfter > 60 && retryAfter <= 900, `Retry-After: ${retryAfter}`)
  }
  await pass(900, email)
  t.equal((await signIn(email, PASSWORD, { via })).statusCode, 200)
})

t.test('After 19 failures the right password signs in', async t => {
  const email = await account()
  await addFailures(email, 19)
  t.equal((await signIn(email, PASSWORD, { via: byDefault })).statusCode, 200)
})

t.test('A throttled sign-in verifies no password, and discloses nothing', async t => {
  const email = await account()
  await guesses(3, email)
  const before = await rows(email)
  await sql`UPDATE users SET password = 'what argon2 throws at' WHERE email = ${email}`
  await waits(t, email, () => signIn(email, PASSWORD))
  await waits(t, email, () => guess(email))
  t.strictSame(await rows(email), before, 'nothing is written')
})

t.test('The window slides: a failure counts for a minute', async t => {
  const email = await account()
  t.strictSame(await guesses(1, email), [401])
  await pass(40, email)
  t.strictSame(await guesses(2, email), [401, 401])
  t.ok(await waits(t, email, () => guess(email)) <= 20, 'until the first one expires')
  await pass(20, email)
  t.strictSame(await guesses(1, email), [401], 'one attempt is free')
  t.ok(await waits(t, email, () => guess(email)) <= 40, 'until the second one expires')
  await pass(60, email)
  t.strictSame(await guesses(4, email), [401, 401, 401, 429])
  t.match(await rows(email), [{ failures: 3 }], 'only the failures that count are stored')
})

t.test('A success clears the failures', async t => {
  const email = await account()
  await guesses(2, email)
  t.equal((await signIn(email, PASSWORD)).statusCode, 200)
  t.strictSame(await rows(email), [], 'the third attempt is not counted either')
  t.strictSame(await guesses(4, email), [401, 401, 401, 429])
})

t.test('Other addresses and other accounts are not throttled', async t => {
  const [ada, eve] = [await account(), await account()]
  await guesses(3, ada)
  t.equal((await guess(ada)).statusCode, 429)
  t.equal((await signIn(ada, PASSWORD, { address: '192.0.2.2' })).statusCode, 200)
  t.equal((await signIn(eve, PASSWORD)).statusCode, 200)
  t.equal((await guess(ada)).statusCode, 429, 'a success from elsewhere does not reset it')
  t.equal((await guess(ada.toUpperCase())).statusCode, 401, 'emails are case-sensitive')
})

t.test('Instances share the count', async t => {
  const email = await account()
  t.strictSame(await guesses(2, email), [401, 401])
  t.strictSame(await guesses(2, email, { via: other }), [401, 429])
  await waits(t, email, () => guess(email))
})

t.test('Of many concurrent attempts on several instances, no more than the limit are verified', async t => {
  for (const email of [await account(), stranger()]) {
    const attempts = Array.from({ length: 20 }, (_, i) => guess(email, { via: i % 2 ? app : other }))
    const statuses = (await Promise.all(attempts)).map(({ statusCode }) => statusCode).sort()
    t.strictSame(statuses, [...Array(3).fill(401), ...Array(17).fill(429)])
  }
})

t.test('An attempt that waits for concurrent failures is throttled when they reach the limit', async t => {
  const email = await account()
  const { response } = await sql.begin(async sql => {
    await addFailures(email, 3, sql)
    const response = [guess(email)]
    await untilBlocked(app.sql)
    return { response }
  })
  assertResponse(t, await response[0]!, 429, { message: WAIT })
  t.match(await rows(email), [{ failures: 3 }])
})

t.test('A sign-in during which others reach the limit is throttled, whatever the password', async t => {
  for (const password of ['wrong horse', PASSWORD]) {
    const email = await account()
    // Waits in the queue behind hashes that end after the others have reached the limit.
    let release!: (hash: string) => void
    const released = new Promise<string>(resolve => { release = resolve })
    const restore = t.intercept(argon2, 'hash', { value: () => released }).restore
    const queue = Array.from({ length: 30 }, () => hashPassword(PASSWORD))
    const response = signIn(email, password)
    while (hashingStats().waiting + hashingStats().running < 31) await sleep(1)
    await addFailures(email, 3)
    t.not(hashingStats().waiting, 0)
    release(HASH)
    restore()
    assertResponse(t, await response, 429, { message: WAIT })
    t.match(await rows(email), [{ failures: 3 }])
    await Promise.all(queue)
  }
})

t.test('An unknown email is counted like a known one, with the same statements', async t => {
  /** The responses to four attempts, and the statements that they cause. */
  async function observe (email: string) {
    const asked: string[] = []
    Object.assign(sql.options, { debug: (_connection: number, query: string) => { asked.push(query) } })
    const seen = []
    for (let i = 0; i < 4; i++) {
      const { statusCode, body, headers } = await guess(email)
      seen.push([statusCode, body, Object.keys(headers)])
    }
    Object.assign(sql.options, { debug: false })
    return { asked, seen }
  }
  const known = await observe(await account())
  t.strictSame(known.seen.map(([status]) => status), [401, 401, 401, 429])
  t.equal(known.asked.length, 3 * 3 + 1)
  t.strictSame(await observe(stranger()), known)
  t.strictSame(await observe((await person(app)).email), known, 'an account without a password behaves alike')
})

t.test('Invalid requests are not counted', async t => {
  const email = await account()
  assertResponse(t, await signIn(email, ''), 400, { message: 'All fields are required' })
  t.equal((await signIn(email, 'nul\u0000')).statusCode, 400)
  t.strictSame(await rows(email), [])
})

t.test('A password that cannot be verified counts neither as a failure nor as a success', async t => {
  const email = await account()
  await guesses(2, email)
  await sql`UPDATE users SET password = 'what argon2 throws at' WHERE email = ${email}`
  for (let i = 0; i < 3; i++) assertResponse(t, await signIn(email, PASSWORD), 500, { message: 'Login failed' })
  t.match(await rows(email), [{ failures: 2 }])
  await sql`UPDATE users SET password = ${HASH} WHERE email = ${email}`
  t.strictSame(await guesses(2, email), [401, 429])
})

t.test('A sign-in that cannot be counted fails, whatever the password', async t => {
  const email = await account()
  await sql`ALTER TABLE rate_limits RENAME TO elsewhere`
  assertResponse(t, await signIn(email, PASSWORD), 500, { message: 'Login failed' })
  assertResponse(t, await guess(email), 500, { message: 'Login failed' })
  await sql`ALTER TABLE elsewhere RENAME TO rate_limits`
})

t.test('An instance with another limit uses the existing count', async t => {
  const email = await account()
  await guesses(2, email)
  t.strictSame(await guesses(1, email, { via: await build(t, { ...limit, SIGN_IN_ATTEMPTS: '2' }) }), [429])
  await guesses(1, email)
  t.strictSame(await guesses(1, email), [429])
  t.strictSame(await guesses(1, email, { via: byDefault }), [401])
})

t.test('TRUST_PROXY tells clients behind a proxy apart', async t => {
  const from = (forwarded: string) => ({ via: behindProxy, address: '10.0.0.1', forwarded })
  const email = await account()
  t.strictSame(await guesses(4, email, from('198.51.100.1')), [401, 401, 401, 429])
  t.equal((await signIn(email, PASSWORD, from('198.51.100.2'))).statusCode, 200)
})

t.test('Failures from many /64 of a /56 count together, four times as many', async t => {
  const app = await build(t, { DATABASE_URL, SIGN_IN_ATTEMPTS_PER_NETWORK: '2', SIGN_IN_WINDOW: '60' })
  const from = (subnet: string) => ({ via: app, address: `2001:db8:0:${subnet}::1` })
  t.strictSame(await guesses(3, stranger(), from('100')), [401, 401, 429])
  for (const subnet of ['101', '102', '1fe']) {
    t.strictSame(await guesses(2, stranger(), from(subnet)), [401, 401], subnet)
  }
  t.strictSame(await guesses(1, stranger(), from('1ff')), [429])
  t.strictSame(await guesses(1, stranger(), from('200')), [401])
})

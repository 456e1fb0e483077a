import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import argon2 from 'argon2'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'

import { hashingLoad, hashPassword } from '#lib/auth/passwords.js'
import { assertResponse } from '../assertions.ts'
import { build, createDatabase, person } from '../helper.ts'

const PASSWORD = 'correct horse'
/** A hash carries its parameters, and what is counted here are attempts: the cheapest do. */
const HASH = await argon2.hash(PASSWORD, { memoryCost: 1024, timeCost: 2, parallelism: 1 })
const ADDRESS = '192.0.2.1'
const WAIT = 'Too many failed sign-ins, please try again later'

/** Instances on one database: of most, three failures in a minute make a pair wait. */
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

/** The statuses of so many wrong guesses, one after the other. */
async function guesses (count: number, email: string, from?: From) {
  const statuses: number[] = []
  for (let i = 0; i < count; i++) statuses.push((await guess(email, from)).statusCode)
  return statuses
}

/** Lets so many seconds pass for the failures of this email. */
async function pass (seconds: number, email: string) {
  await sql`
    UPDATE sign_in_failures SET times = ARRAY(
      SELECT time - make_interval(secs => ${seconds})
      FROM unnest(times) WITH ORDINALITY AS failures (time, position) ORDER BY position
    ) WHERE email = ${email}
  `
}

const rows = async (email: string) => [...await sql`
  SELECT *, xmin::text, cardinality(times) AS failures FROM sign_in_failures WHERE email = ${email}
`]

/** Checks that the sign-in is refused, and told to come back when the last three failures are not within a minute. */
async function waits (t: Test, email: string, attempt: () => ReturnType<typeof signIn>) {
  const seconds = async () => (await sql<{ seconds: number }[]>`
    SELECT ceil(extract(epoch FROM times[3] + interval '1 minute' - now()))::integer AS seconds
    FROM sign_in_failures WHERE email = ${email}
  `)[0]!.seconds
  const before = await seconds()
  const response = await attempt()
  assertResponse(t, response, 429, { message: WAIT })
  const retryAfter = String(response.headers['retry-after'])
  t.match(retryAfter, /^\d+$/)
  t.ok(await seconds() <= Number(retryAfter) && Number(retryAfter) <= before, `Retry-After: ${retryAfter}`)
  return Number(retryAfter)
}

t.test('After 20 failures in 15 minutes the right password is refused too', async t => {
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

t.test('19 failures do not keep the right password out', async t => {
  const email = await account()
  await sql`INSERT INTO sign_in_failures VALUES (${email}, ${ADDRESS}, array_fill(now(), ARRAY[19]))`
  t.equal((await signIn(email, PASSWORD, { via: byDefault })).statusCode, 200)
})

t.test('A refused sign-in costs next to nothing, and tells nothing', async t => {
  const email = await account()
  await guesses(3, email)
  const before = await rows(email)
  await sql`UPDATE users SET password = 'what argon2 throws at' WHERE email = ${email}`
  await waits(t, email, () => signIn(email, PASSWORD))
  await waits(t, email, () => guess(email))
  t.strictSame(await rows(email), before, 'nothing is written')
})

t.test('The window slides: a failure counts until it is a minute old', async t => {
  const email = await account()
  t.strictSame(await guesses(1, email), [401])
  await pass(40, email)
  t.strictSame(await guesses(2, email), [401, 401])
  t.ok(await waits(t, email, () => guess(email)) <= 20, 'until the first one is')
  await pass(20, email)
  t.strictSame(await guesses(1, email), [401], 'in its place')
  t.ok(await waits(t, email, () => guess(email)) <= 40, 'until the second one is')
  await pass(60, email)
  t.strictSame(await guesses(4, email), [401, 401, 401, 429])
  t.match(await rows(email), [{ failures: 3 }], 'no more are kept than count')
})

t.test('A success clears the failures', async t => {
  const email = await account()
  await guesses(2, email)
  t.equal((await signIn(email, PASSWORD)).statusCode, 200)
  t.strictSame(await rows(email), [], 'the third attempt is no failure either')
  t.strictSame(await guesses(4, email), [401, 401, 401, 429])
})

t.test('Nobody locks another out: other addresses and other accounts go on', async t => {
  const [ada, eve] = [await account(), await account()]
  await guesses(3, ada)
  t.equal((await guess(ada)).statusCode, 429)
  t.equal((await signIn(ada, PASSWORD, { address: '192.0.2.2' })).statusCode, 200)
  t.equal((await signIn(eve, PASSWORD)).statusCode, 200)
  t.equal((await guess(ada)).statusCode, 429, 'a success from elsewhere changes nothing')
  t.equal((await guess(ada.toUpperCase())).statusCode, 401, 'emails are used as supplied')
})

t.test('All addresses of an IPv6 /64 are one, and so are the two ways to write an IPv4 address', async t => {
  const [ada, eve] = [await account(), await account()]
  for (const address of ['2001:db8:1:2::1', '2001:db8:1:2::2', '2001:db8:1:2:3:4:5:6']) {
    t.strictSame(await guesses(1, ada, { address }), [401])
  }
  t.strictSame(await guesses(1, ada, { address: '2001:db8:1:2:ffff::' }), [429])
  t.strictSame(await guesses(1, ada, { address: '2001:db8:1:3::1' }), [401])

  await guesses(3, eve)
  t.strictSame(await guesses(1, eve, { address: `::ffff:${ADDRESS}` }), [429])
})

t.test('Several instances share the count', async t => {
  const email = await account()
  t.strictSame(await guesses(2, email), [401, 401])
  t.strictSame(await guesses(2, email, { via: other }), [401, 429])
  await waits(t, email, () => guess(email))
})

t.test('Of many guesses at once, on several instances, no more than the limit are told to be wrong', async t => {
  for (const email of [await account(), stranger()]) {
    const attempts = Array.from({ length: 20 }, (_, i) => guess(email, { via: i % 2 ? app : other }))
    const statuses = (await Promise.all(attempts)).map(({ statusCode }) => statusCode).sort()
    t.strictSame(statuses, [...Array(3).fill(401), ...Array(17).fill(429)])
  }
})

t.test('A guess that waits for others to be counted is refused when they reach the limit', async t => {
  const email = await account()
  const blocked = async () => (await sql`
    SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
  `).length > 0
  const { response } = await sql.begin(async sql => {
    await sql`INSERT INTO sign_in_failures VALUES (${email}, ${ADDRESS}, array_fill(now(), ARRAY[3]))`
    const response = [guess(email)]
    while (!await blocked()) await sleep(10)
    return { response }
  })
  assertResponse(t, await response[0]!, 429, { message: WAIT })
  t.match(await rows(email), [{ failures: 3 }])
})

t.test('A sign-in during which others reach the limit is refused, whatever the password', async t => {
  for (const password of ['wrong horse', PASSWORD]) {
    const email = await account()
    // It waits for its turn behind hashes that end when the others have reached it.
    let release!: (hash: string) => void
    const released = new Promise<string>(resolve => { release = resolve })
    const restore = t.intercept(argon2, 'hash', { value: () => released }).restore
    const queue = Array.from({ length: 30 }, () => hashPassword(PASSWORD))
    const response = signIn(email, password)
    while (hashingLoad().waiting + hashingLoad().running < 31) await sleep(1)
    await sql`INSERT INTO sign_in_failures VALUES (${email}, ${ADDRESS}, array_fill(now(), ARRAY[3]))`
    t.not(hashingLoad().waiting, 0)
    release(HASH)
    restore()
    assertResponse(t, await response, 429, { message: WAIT })
    t.match(await rows(email), [{ failures: 3 }])
    await Promise.all(queue)
  }
})

t.test('An unknown email is counted like a known one, by the same statements', async t => {
  /** What a stranger sees of four guesses, and what the database is asked meanwhile. */
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
  t.strictSame(await observe((await person(app)).email), known, 'nor has an account of the identity provider')
})

t.test('What is no guess is not counted', async t => {
  const email = await account()
  assertResponse(t, await signIn(email, ''), 400, { message: 'All fields are required' })
  t.equal((await signIn(email, 'nul\u0000')).statusCode, 400)
  t.strictSame(await rows(email), [])
})

t.test('A password that cannot be verified is no failure, and takes no other back', async t => {
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
  await sql`ALTER TABLE sign_in_failures RENAME TO elsewhere`
  assertResponse(t, await signIn(email, PASSWORD), 500, { message: 'Login failed' })
  assertResponse(t, await guess(email), 500, { message: 'Login failed' })
  await sql`ALTER TABLE elsewhere RENAME TO sign_in_failures`
})

t.test('SIGN_IN_ATTEMPTS=0 switches it off', async t => {
  const via = await build(t, { ...limit, SIGN_IN_ATTEMPTS: '0' })
  const email = await account()
  t.strictSame(await guesses(4, email, { via }), [401, 401, 401, 401])
  t.strictSame(await rows(email), [])
  await guesses(3, email)
  t.equal((await signIn(email, PASSWORD, { via })).statusCode, 200, 'what others counted does not matter')
})

t.test('Where the number is another, what is counted already counts', async t => {
  const email = await account()
  await guesses(2, email)
  t.strictSame(await guesses(1, email, { via: await build(t, { ...limit, SIGN_IN_ATTEMPTS: '2' }) }), [429])
  await guesses(1, email)
  t.strictSame(await guesses(1, email), [429])
  t.strictSame(await guesses(1, email, { via: byDefault }), [401])
})

t.test('Where nobody is trusted, a forwarding header changes nothing', async t => {
  const [ada, eve] = [await account(), await account()]
  t.strictSame(await guesses(3, ada, { forwarded: '198.51.100.1' }), [401, 401, 401])
  t.strictSame(await guesses(1, ada, { forwarded: '198.51.100.2' }), [429], 'no other address by claiming one')
  await guesses(3, eve, { address: '192.0.2.2', forwarded: ADDRESS })
  t.equal((await signIn(eve, PASSWORD)).statusCode, 200, 'nor is anyone locked out by it')
})

t.test('TRUST_PROXY tells people behind a proxy apart', async t => {
  const from = (forwarded: string) => ({ via: behindProxy, address: '10.0.0.1', forwarded })
  const email = await account()
  t.strictSame(await guesses(4, email, from('198.51.100.1')), [401, 401, 401, 429])
  t.strictSame(await guesses(1, email, from('198.51.100.9, 198.51.100.1')), [429], 'what stands before is a claim')
  t.equal((await signIn(email, PASSWORD, from('198.51.100.2'))).statusCode, 200)
  t.strictSame(await guesses(3, email, from('made up')), [401, 401, 401])
  t.strictSame(await guesses(1, email, from('made up, too')), [429], 'what is no address is no other address')
})

t.test('TRUST_PROXY believes nobody who comes without the proxy', async t => {
  const email = await account()
  await guesses(3, email, { via: behindProxy, forwarded: '198.51.100.1' })
  t.strictSame(await guesses(1, email, { via: behindProxy, forwarded: '198.51.100.2' }), [429])
})

t.test('Failures of the past are removed, ten with each new one, without waiting for anybody', async t => {
  await sql`TRUNCATE sign_in_failures`
  await sql`
    INSERT INTO sign_in_failures
    SELECT 'past' || n, ${ADDRESS}, ARRAY[now() - (60 + n) * interval '1 second', now() - interval '1 day']
    FROM generate_series(1, 25) AS n
  `
  await sql`
    INSERT INTO sign_in_failures
    VALUES ('present', ${ADDRESS}, ARRAY[now() - interval '30 seconds', now() - interval '1 day'])
  `
  const left = async () => (await sql`SELECT FROM sign_in_failures WHERE email LIKE 'past%'`).length
  const email = await account()
  await guesses(1, email)
  t.equal(await left(), 15)
  await sql.begin(async sql => {
    await sql`SELECT FROM sign_in_failures WHERE email = 'past1' FOR UPDATE`
    await guesses(2, email)
    t.equal(await left(), 1, 'but the one that is in use')
  })
  await guesses(1, stranger())
  t.equal(await left(), 0)
  t.equal((await rows('present')).length, 1)
  t.equal((await rows(email)).length, 1)
})

import { randomUUID } from 'node:crypto'

import argon2 from 'argon2'
import type { FastifyInstance } from 'fastify'

import { eraseUser } from '#lib/auth/erasure.js'
import { assertResponse } from '../assertions.ts'
import { build, createDatabase, person } from '../helper.ts'
import t, { type Test } from '../suite.ts'

const PASSWORD = 'correct horse'
/** The cheapest hash: these tests count attempts. */
const HASH = await argon2.hash(PASSWORD, { memoryCost: 1024, timeCost: 2, parallelism: 1 })

const FAILURES = 'Too many failed sign-ins, please try again later'
const REGISTRATIONS = 'Too many registrations, please try again later'
const SUBMISSIONS = 'Too many submissions, please try again later'

/** Instances on one database; all but the last have every limit. */
const DATABASE_URL = await createDatabase(t)
const limited = {
  DATABASE_URL,
  SIGN_IN_ATTEMPTS: '3',
  SIGN_IN_ATTEMPTS_PER_NETWORK: '5',
  SIGN_IN_WINDOW: '60',
  REGISTRATIONS_PER_NETWORK: '3',
  SUBMISSIONS_PER_USER: '3',
}
const app = await build(t, limited)
const other = await build(t, limited)
const byDefault = await build(t, { DATABASE_URL, SUBMISSIONS_PER_USER: '0' })
const { sql } = app

let networks = 0
/** An address that is new to the service. */
const newAddress = () => `192.0.2.${++networks}`
const account = async () => (await person(app, 'STUDENT', { password: HASH })).email
const stranger = () => `${randomUUID()}@example.org`

const signIn = (address: string, email: string, password = PASSWORD, via = app) =>
  via.inject({ method: 'POST', url: '/auth/login', remoteAddress: address, payload: { email, password } })
const guess = (address: string, email: string, via = app) => signIn(address, email, 'wrong horse', via)

const register = (address: string, via = app, email = stranger()) => via.inject({
  method: 'POST',
  url: '/auth/register',
  remoteAddress: address,
  payload: { email, password: PASSWORD, firstName: 'Ada', lastName: 'Lovelace' },
})

const submit = ({ token }: { token: string }, via = app) => via.inject({
  method: 'POST',
  url: '/blogs/submit',
  headers: { authorization: `Bearer ${token}` },
  payload: { title: 'A title', content: 'twenty characters or more' },
})

/** Sends attempts one after the other. Returns the statuses. */
async function statuses (count: number, attempt: (n: number) => Promise<{ statusCode: number }>) {
  const seen: number[] = []
  for (let n = 0; n < count; n++) seen.push((await attempt(n)).statusCode)
  return seen
}

/** Sends attempts concurrently. Returns the statuses, sorted. */
async function atOnce (count: number, attempt: (n: number) => Promise<{ statusCode: number }>) {
  const responses = await Promise.all(Array.from({ length: count }, (_, n) => attempt(n)))
  return responses.map(({ statusCode }) => statusCode).sort()
}

const times = (count: number, status: number) => Array<number>(count).fill(status)

/** The failures that are stored for an account, of all networks. */
const storedFor = async (email: string) =>
  [...await sql`SELECT times FROM rate_limits WHERE starts_with(key, ${`${email} `})`]

const stored = async (key: string) => [...await sql`
  SELECT name, xmin::text, cardinality(times) AS uses FROM rate_limits WHERE key = ${key} ORDER BY name
`]

/** Ages the uses of this network or user by some seconds. */
async function pass (seconds: number, key: string) {
  await sql`
    UPDATE rate_limits SET times = ARRAY(
      SELECT time - make_interval(secs => ${seconds})
      FROM unnest(times) WITH ORDINALITY AS uses (time, position) ORDER BY position
    ) WHERE key = ${key}
  `
}

type Response = Awaited<ReturnType<typeof signIn>>

/** Asserts a 429 with a Retry-After of at most so many seconds. */
function waits (t: Test, response: Response, message: string, atMost = 60) {
  assertResponse(t, response, 429, { message })
  const retryAfter = String(response.headers['retry-after'])
  t.match(retryAfter, /^[1-9]\d*$/)
  t.ok(Number(retryAfter) <= atMost, `Retry-After: ${retryAfter}`)
}

t.test('Failures for different accounts count for their network', async t => {
  const [address, email] = [newAddress(), await account()]
  t.strictSame(await statuses(5, async n => guess(address, n % 2 ? await account() : stranger())), times(5, 401))
  const before = await stored(address)
  t.match(before, [{ name: 'failed-sign-ins', uses: 5 }])
  waits(t, await guess(address, stranger()), FAILURES)
  waits(t, await guess(address, email), FAILURES)
  waits(t, await signIn(address, email), FAILURES)
  t.strictSame(await stored(address), before, 'throttled attempts write nothing')
  t.strictSame(await storedFor(email), [], 'not for the account either')
  t.equal((await signIn(newAddress(), email)).statusCode, 200, 'other networks are not throttled')
})

t.test('By default a network has 300 failures in 15 minutes', async t => {
  const [address, email] = [newAddress(), await account()]
  await sql`INSERT INTO rate_limits VALUES ('failed-sign-ins', ${address}, array_fill(now(), ARRAY[299]))`
  t.equal((await signIn(address, await account(), PASSWORD, byDefault)).statusCode, 200)
  t.equal((await guess(address, email, byDefault)).statusCode, 401)
  waits(t, await signIn(address, email, PASSWORD, byDefault), FAILURES, 900)
  await pass(900, address)
  t.equal((await signIn(address, email, PASSWORD, byDefault)).statusCode, 200)
})

t.test('A success neither resets nor increases the count', async t => {
  const [address, email] = [newAddress(), await account()]
  await statuses(4, () => guess(address, stranger()))
  t.strictSame(await statuses(3, () => signIn(address, email)), times(3, 200))
  t.match(await stored(address), [{ uses: 4 }])
  t.strictSame(await statuses(2, () => guess(address, stranger())), [401, 429])
})

t.test('An attempt that the account limit throttles does not count for the network', async t => {
  const [address, email] = [newAddress(), await account()]
  t.strictSame(await statuses(9, () => guess(address, email)), [...times(3, 401), ...times(6, 429)])
  t.match(await stored(address), [{ uses: 3 }])
})

t.test('A sign-in during which others reach the limit is throttled, whatever the password', async t => {
  for (const password of ['wrong horse', PASSWORD]) {
    const [address, email] = [newAddress(), await account()]
    let release!: (verified: boolean) => void
    let begin!: () => void
    const begun = new Promise<void>(resolve => { begin = resolve })
    const { verify } = argon2
    const { restore } = t.intercept(argon2, 'verify', {
      async value (...args: Parameters<typeof verify>) {
        begin()
        await new Promise<boolean>(resolve => { release = resolve })
        return verify(...args)
      },
    })
    const response = signIn(address, email, password)
    await begun
    await sql`INSERT INTO rate_limits VALUES ('failed-sign-ins', ${address}, array_fill(now(), ARRAY[5]))`
    release(true)
    restore()
    waits(t, await response, FAILURES)
    t.match(await stored(address), [{ uses: 5 }])
  }
})

/** Makes a network reach its limit by failures for accounts that do not exist. */
const exhaust = (address: string) => statuses(5, () => guess(address, stranger()))

t.test('Failures of others do not hold up who has signed in from their network', async t => {
  const [address, email, other] = [newAddress(), await account(), await account()]
  t.equal((await signIn(address, email)).statusCode, 200)
  await exhaust(address)
  waits(t, await signIn(address, other), FAILURES)
  t.strictSame(await statuses(2, () => signIn(address, email)), [200, 200])
  t.strictSame(await statuses(4, () => guess(address, email)), [...times(3, 401), 429], 'only their own failures do')
  waits(t, await signIn(address, email), FAILURES)
  t.match(await stored(address), [{ uses: 5 }], 'which do not count for the network')

  const elsewhere = newAddress()
  await exhaust(elsewhere)
  waits(t, await signIn(elsewhere, email), FAILURES)
})

t.test('Who has registered from a network has signed in from it', async t => {
  const [address, email] = [newAddress(), stranger()]
  t.equal((await register(address, app, email)).statusCode, 201)
  await exhaust(address)
  t.equal((await signIn(address, email)).statusCode, 200)
})

t.test('A network is known for four weeks, as a hash by a key, and written once a day', async t => {
  const [address, email] = [newAddress(), await account()]
  const known = async () => [...await sql`
    SELECT known_networks.*, used_on::text, known_networks.xmin::text FROM known_networks JOIN users ON id = user_id
    WHERE email = ${email}
  `]
  const age = (days: number) => sql`
    UPDATE known_networks SET used_on = current_date - ${days}::integer
    WHERE user_id = (SELECT id FROM users WHERE email = ${email})
  `
  await signIn(address, email)
  const before = await known()
  t.equal(before.length, 1)
  t.match(before[0]!.hash, /^[\w-]{43}$/)
  await signIn(address, email)
  t.strictSame(await known(), before, 'not written again on this day')

  await exhaust(address)
  await age(27)
  t.equal((await signIn(address, email)).statusCode, 200)
  t.match(await known(), [{ hash: before[0]!.hash, used_on: before[0]!.used_on }], 'for four more weeks')
  await age(28)
  waits(t, await signIn(address, email), FAILURES)

  await age(0)
  t.equal((await signIn(address, email)).statusCode, 200)
  const otherKey = await build(t, { ...limited, JWT_SECRET: 'another secret of more than 32 characters' })
  waits(t, await signIn(address, email, PASSWORD, otherKey), FAILURES)
})

t.test('Each new network deletes ten past ones, without waiting for locks', async t => {
  const { id } = await person(app)
  await sql`
    INSERT INTO known_networks
    SELECT ${id}, 'past' || n, current_date - 27 - n FROM generate_series(0, 15) AS n
  `
  const left = async () => (await sql`SELECT hash FROM known_networks WHERE user_id = ${id} ORDER BY used_on DESC`)
    .map(({ hash }) => hash)
  await sql.begin(async sql => {
    await sql`SELECT FROM known_networks WHERE hash = 'past15' FOR UPDATE`
    await signIn(newAddress(), await account())
    t.strictSame(await left(), ['past0', 'past1', 'past2', 'past3', 'past4', 'past15'])
  })
  const email = await account()
  t.strictSame(await statuses(2, () => signIn(newAddress(), email)), [200, 200])
  t.strictSame(await left(), ['past0'])
})

t.test('Each of the two limits can be turned off', async t => {
  const onlyNetwork = await build(t, { ...limited, SIGN_IN_ATTEMPTS: '0' })
  const onlyAccount = await build(t, { ...limited, SIGN_IN_ATTEMPTS_PER_NETWORK: '0' })
  const neither = await build(t, { ...limited, SIGN_IN_ATTEMPTS: '0', SIGN_IN_ATTEMPTS_PER_NETWORK: '0' })
  const email = await account()

  const one = newAddress()
  t.strictSame(await statuses(6, () => guess(one, email, onlyNetwork)), [...times(5, 401), 429])
  waits(t, await signIn(one, email, PASSWORD, onlyNetwork), FAILURES)
  t.strictSame(await storedFor(email), [])

  const two = newAddress()
  t.strictSame(await statuses(9, () => guess(two, stranger(), onlyAccount)), times(9, 401))
  t.strictSame(await statuses(4, () => guess(two, email, onlyAccount)), [...times(3, 401), 429])

  const three = newAddress()
  t.strictSame(await statuses(9, () => guess(three, email, neither)), times(9, 401))
  t.strictSame([...await stored(two), ...await stored(three)], [])
})

/** The other limits, per network or user. */
interface Limited {
  what: string
  name: string
  message: string
  /** A new network or user. */
  newcomer (): Promise<{ key: string, attempt: (via?: FastifyInstance) => Promise<Response> }>
}

const LIMITED: Limited[] = [
  {
    what: 'REGISTRATIONS_PER_NETWORK',
    name: 'registrations',
    message: REGISTRATIONS,
    async newcomer () {
      const address = newAddress()
      return { key: address, attempt: via => register(address, via) }
    },
  },
  {
    what: 'SUBMISSIONS_PER_USER',
    name: 'submissions',
    message: SUBMISSIONS,
    async newcomer () {
      const user = await person(app)
      return { key: user.id, attempt: via => submit(user, via) }
    },
  },
]

t.test('REGISTRATIONS_PER_NETWORK: a /56 may register four times as often as a /64 of it', async t => {
  for (const subnet of ['a1', 'a2', 'a3', 'a4']) {
    t.strictSame(await statuses(3, () => register(`2001:db8:0:${subnet}::1`)), times(3, 201))
  }
  waits(t, await register('2001:db8:0:a5::1'), REGISTRATIONS, 60)
  t.equal((await register('2001:db8:0:1a1::1')).statusCode, 201)
})

for (const { what, name, message, newcomer } of LIMITED) {
  t.test(`${what}: instances share the count, in a sliding window`, async t => {
    const { key, attempt } = await newcomer()
    t.equal((await attempt()).statusCode, 201)
    await pass(40, key)
    t.strictSame(await statuses(2, () => attempt(other)), [201, 201])
    const before = await stored(key)
    t.match(before, [{ name, uses: 3 }])
    waits(t, await attempt(), message, 20)
    waits(t, await attempt(other), message, 20)
    t.strictSame(await stored(key), before, 'throttled requests write nothing')
    await pass(20, key)
    t.strictSame(await statuses(2, () => attempt()), [201, 429])
    const { attempt: another } = await newcomer()
    t.equal((await another()).statusCode, 201, 'others are not throttled')
  })

  t.test(`${what}: of many concurrent requests, no more than the limit succeed`, async t => {
    const { key, attempt } = await newcomer()
    t.strictSame(await atOnce(12, n => attempt(n % 2 ? app : other)), [...times(3, 201), ...times(9, 429)])
    t.match(await stored(key), [{ name, uses: 3 }])
  })

  t.test(`${what}: without a limit nothing is counted`, async t => {
    const { key, attempt } = await newcomer()
    t.strictSame(await statuses(4, () => attempt(byDefault)), times(4, 201))
    t.strictSame(await stored(key), [])
  })
}

t.test('A registration with an existing email counts: it discloses that the account exists', async t => {
  const [address, email] = [newAddress(), await account()]
  t.strictSame(await statuses(4, () => register(address, app, email)), [409, 409, 409, 429])
})

t.test('Invalid registrations and submissions do not count', async t => {
  const address = newAddress()
  t.strictSame(await statuses(4, () => register(address, app, 'no email')), times(4, 400))
  t.strictSame(await stored(address), [])
})

t.test('Each use deletes ten expired rows, without waiting for locks', async t => {
  await sql`TRUNCATE rate_limits`
  await sql`
    INSERT INTO rate_limits
    SELECT 'submissions', 'past' || n, ARRAY[now() - (60 + n) * interval '1 second'] FROM generate_series(1, 35) AS n
  `
  await sql`INSERT INTO rate_limits VALUES ('submissions', 'present', ARRAY[now() - interval '30 seconds'])`
  const left = async () => (await sql`SELECT FROM rate_limits WHERE key LIKE 'past%'`).length
  const address = newAddress()
  await register(address)
  t.equal(await left(), 25)
  await sql.begin(async sql => {
    await sql`SELECT FROM rate_limits WHERE key = 'past1' FOR UPDATE`
    await guess(address, stranger())
    t.equal(await left(), 15)
    await submit(await person(app))
    t.equal(await left(), 5)
    await guess(address, stranger())
    t.equal(await left(), 1, 'except the locked one')
  })
  await guess(address, stranger())
  t.equal(await left(), 0)
  t.equal((await stored('present')).length, 1)
})

t.test('The token of an erased user leaves nothing in rate_limits', async t => {
  const app = await build(t, { SUBMISSIONS_PER_USER: '3' })
  const ada = await person(app)
  const body = { title: 'A title', content: 'A text that is long enough' }
  t.equal((await ada.inject('POST', '/blogs/submit', body)).statusCode, 201)
  // Some before, some during, some after.
  const submissions = Array.from({ length: 20 }, () => ada.inject('POST', '/blogs/submit', body))
  await eraseUser(app.sql, ada.email, {})
  await Promise.all(submissions)
  t.equal((await ada.inject('POST', '/blogs/submit', body)).statusCode, 500)
  t.strictSame([...await app.sql`SELECT FROM rate_limits WHERE key = ${ada.id}`], [])
})

// A cause of many emails delays their own emails, and nobody else's.
import { setTimeout as sleep } from 'node:timers/promises'

import { Sender } from '#lib/email/sender.js'
import { SmtpTransport } from '#lib/email/smtp.js'
import { buildWithoutSender, insert, MAIL, type Person, person, testConfig } from '../../helper.ts'
import { startMailServer } from '../../smtp.ts'
import t, { type Test } from '../../suite.ts'

// The tests run their own senders.
const app = await buildWithoutSender(t, { ...MAIL, REMINDER_HOURS: '0' })
const { sql } = app
const admin = await person(app, 'ADMIN')
const club = await insert(app, 'clubs')
t.beforeEach(() => sql`TRUNCATE emails, email_batches, event_registrations, events CASCADE`)

const member = (fields = {}) => person(app, 'STUDENT', { email_verified_at: new Date(), ...fields })
const makeEvent = (title = 'Chess Night') => insert(app, 'events', {
  title, date: new Date(Date.now() + 10 * 86_400_000), club_id: club,
})
const limit = (id: string, capacity: number) => admin.inject('PUT', `/agenda/${id}`, { capacity })
const register = (who: Person, id: string) => who.inject('POST', `/events/${id}/register`)
const answer = (who: Person, id: string, coming: boolean) => who.inject('PUT', `/me/seats/${id}`, { coming })

/** Starts a sender whose bulk emails take one tick each. Returns the server, and a wait for a subject of a person. */
async function startSending (t: Test, tick = 20) {
  const server = await startMailServer(t)
  const config = testConfig({ ...MAIL, SMTP_URL: server.url, MAIL_RATE: '3000', REMINDER_HOURS: '0' })
  const log = { info () {}, warn () {}, error (error: unknown) { t.fail('a tick fails', { error }) } }
  const sender = new Sender({
    sql, config, log, transport: new SmtpTransport(config),
  }, { tick, pause: { first: 20, longest: 40 }, stop: 100 })
  sender.start()
  t.teardown(() => sender.stop())
  return {
    /** Returns the number of emails that were sent before. */
    async arrival (who: Person, subject: RegExp) {
      for (let n = 0; n < 2000; n++) {
        for (const [place, { to }] of server.emails.entries()) {
          if (to[0] === who.email && subject.test((await server.parse(place)).subject!)) return place
        }
        await sleep(20)
      }
      throw new Error(`Nothing arrived: ${subject}`)
    },
  }
}

const batches = async () => (await sql<{ template: string, due: boolean }[]>`
  SELECT template, due_at <> 'infinity' AS due FROM email_batches ORDER BY template
`).map(({ template }) => template)

const pending = async () => (await sql`SELECT FROM emails WHERE status = 'pending'`).length

for (const isVerified of [false, true]) {
  t.test(`${isVerified ? 'Verified' : 'Unverified'} accounts that pass a seat to and fro delay nobody`, async t => {
    const fields = isVerified ? {} : { email_verified_at: null }
    const [eve, mal, ada] = [await member(fields), await member(fields), await member()]
    const [seat, other] = [await makeEvent('Go Night'), await makeEvent()]
    await limit(seat, 1)
    for (const who of [eve, mal]) await register(who, seat)
    await register(ada, other)
    await sql`DELETE FROM emails`
    for (let n = 0; n < 100; n++) {
      const who = n % 2 === 0 ? eve : mal
      t.equal((await answer(who, seat, false)).statusCode, 200)
      await answer(who, seat, true)
    }
    t.strictSame(await batches(), isVerified ? ['seat'] : [], 'seats of an event are one batch')
    t.equal((await admin.inject('DELETE', `/events/${other}`)).statusCode, 200)
    const { arrival } = await startSending(t)
    t.ok(await arrival(ada, /^Cancelled/) <= 2)
  })
}

t.test('A head who registers and removes himself delays nobody', async t => {
  const eve = await person(app, 'CLUB_HEAD', { club_id: club, email_verified_at: new Date() })
  const [event, ada] = [await makeEvent(), await member()]
  for (let n = 0; n < 100; n++) {
    const { registration } = (await register(eve, event)).json()
    t.equal((await eve.inject('DELETE', `/agenda/${event}/seats/${registration.id}`)).statusCode, 200)
  }
  await register(ada, event)
  t.equal(await pending(), 3, 'an email replaces those that wait to tell an earlier state')
  const { arrival } = await startSending(t)
  t.ok(await arrival(ada, /Chess Night/) <= 2)
})

t.test('A member who leaves and takes a seat again and again adds no emails', async t => {
  const [event, eve] = [await makeEvent(), await member()]
  await register(eve, event)
  t.equal((await admin.inject('PUT', `/agenda/${event}`, { place: 'Room 1' })).statusCode, 200)
  for (let n = 0; n < 20; n++) {
    await answer(eve, event, false)
    t.equal((await answer(eve, event, true)).statusCode, 200)
  }
  t.strictSame(
    [...await sql`SELECT template, count(*)::int FROM emails GROUP BY template ORDER BY template`],
    [{ template: 'event-changed', count: 1 }, { template: 'registration', count: 1 }]
  )
})

t.test('A seat does not wait behind a message of the same person to many', async t => {
  const [event, ada] = [await makeEvent(), await member()]
  await sql`
    WITH many AS (
      INSERT INTO users (email, password, first_name, last_name, email_verified_at)
      SELECT n || '@turns.example.org', '!', 'Ada', 'Lovelace', now() FROM generate_series(1, 90) AS n RETURNING id
    )
    INSERT INTO event_registrations (user_id, event_id) SELECT id, ${event} FROM many
  `
  await limit(event, 90)
  await register(ada, event)
  await sql`DELETE FROM emails`
  const text = 'Please bring a board and a clock.'
  const sent = await admin.inject('POST', `/agenda/${event}/message`, { subject: 'Boards', text })
  t.equal(sent.statusCode, 202)
  const { arrival } = await startSending(t)
  while (await pending() === 0) await sleep(5)
  await limit(event, 91)
  const before = 91 - await pending()
  const place = await arrival(ada, /seat/i)
  // Two turns, of which chance chooses one.
  t.ok(place - before < 30, `behind ${place - before} others`)
})

t.test('Small batches of one person are written at once, and do not delay the batch of another person', async t => {
  const [eve, ada] = [await person(app, 'ADMIN'), await member()]
  const event = await makeEvent()
  await register(ada, event)
  for (let n = 0; n < 100; n++) {
    const id = await makeEvent('Go Night')
    await register(ada, id)
    t.equal((await eve.inject('DELETE', `/events/${id}`)).statusCode, 200)
  }
  await sql`DELETE FROM emails`
  await admin.inject('DELETE', `/events/${event}`)
  const { arrival } = await startSending(t)
  const place = await arrival(ada, /^Cancelled: Chess Night/)
  t.ok(place < 30, `behind ${place} others`)
  t.equal((await sql`SELECT DISTINCT told_at FROM email_batches WHERE told_at IS NOT NULL`).length, 1,
    'in one transaction')
})

t.test('The erasure of a person in many lines takes one statement for all of them', async t => {
  const [eve, ada] = [await member(), await member()]
  const erase = async (events: number) => {
    const who = await member()
    await sql`
      WITH made AS (
        INSERT INTO events (title, description, date, club_id)
        SELECT 'Chess Night', 'Chess', now() + interval '9 days', ${club} FROM generate_series(1, ${events}::integer)
        RETURNING id
      )
      INSERT INTO event_details (event_id, capacity) SELECT id, 1 FROM made
    `
    for (const { id } of [who, eve]) {
      await sql`
        INSERT INTO event_registrations (user_id, event_id)
        SELECT ${id}, events.id FROM events
        WHERE NOT EXISTS (SELECT FROM event_registrations WHERE user_id = ${id} AND event_id = events.id)
      `
    }
    const start = performance.now()
    const erasing = admin.inject('DELETE', `/account/${who.id}`)
    await sleep(5)
    const [{ id }] = await sql<[{ id: string }]>`SELECT id FROM events LIMIT 1`
    const registering = register(ada, id)
    t.equal((await erasing).statusCode, 200)
    const took = performance.now() - start
    t.match((await registering).statusCode, /^(201|400)$/)
    return took
  }
  await erase(10)
  const [few, many] = [await erase(10), await erase(1000)]
  const seats = await sql`SELECT FROM email_batches WHERE template = 'seat' AND cardinality(user_ids) = 1`
  t.ok(seats.length >= 1000)
  t.comment({ few, many })
  t.ok(many < 30 * few + 1000, `${many} ms, ${few} ms for 10 events`)
})

import { createSecretToken, hashSecretToken } from '#lib/auth/secret-tokens.js'
import { SWITCH_OF, unsubscribeToken } from '#lib/email/notifications.js'
import { assertInvalid, assertMessage } from '../assertions.ts'
import { build, inject, insert, MAIL, make, type Person, person, untilBlocked } from '../helper.ts'
import t from '../suite.ts'

const app = await build(t, MAIL)
const { DATABASE_URL } = app.config
const bare = await build(t)
const { sql } = app
const [chess, go] = [await insert(app, 'clubs'), await insert(app, 'clubs')]
const MESSAGE = { subject: 'Boards', text: 'Bring a board, please.' }

/** Writes an email of a template to a user that was sent; returns its token. */
async function writeMail ({ id }: Person, template: string) {
  const token = createSecretToken()
  await sql`
    INSERT INTO emails (template, bulk, user_id, data, status, settled_at, token_hash)
    VALUES (${template}, true, ${id}, '{}', 'sent', now(), ${hashSecretToken(token)})
  `
  return token
}

const notificationsOf = async (user: Person) => (await user.inject('GET', '/me/notifications')).json().notifications

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

t.test('The token of an email turns off emails of its kind, without a sign-in', async t => {
  for (const [template, name] of Object.entries(SWITCH_OF)) {
    const [ada, bob] = [await person(app), await person(app)]
    const path = `/account/unsubscribe/${await writeMail(ada, template)}`
    await writeMail(bob, template)
    const all = await notificationsOf(ada)
    for (let n = 0; n < 2; n++) {
      const response = await inject(app, 'POST', path, 'List-Unsubscribe=One-Click', FORM)
      t.strictSame([response.statusCode, response.json()], [200, { message: "You're unsubscribed from these emails" }])
    }
    t.strictSame(await notificationsOf(ada), { ...all, [name]: false }, name)
    t.strictSame(await notificationsOf(bob), all)
    await ada.inject('PUT', '/me/notifications', { notifications: { [name]: true } })
    await inject(app, 'POST', path)
    t.equal((await notificationsOf(ada))[name], false, 'also when they were turned on again')
  }
})

t.test('The link of the header List-Unsubscribe only opens the page of the app', async t => {
  const ada = await person(app)
  const token = await writeMail(ada, 'event-reminder')
  const all = await notificationsOf(ada)
  for (const [method, status] of [['GET', 302], ['HEAD', 302], ['PUT', 404], ['DELETE', 404]] as const) {
    const { statusCode, headers } = await inject(app, method, `/account/unsubscribe/${token}`)
    const location = status === 302 ? `https://app.example.org/unsubscribe#token=${token}` : undefined
    t.strictSame([statusCode, headers.location], [status, location], method)
  }
  t.strictSame(await notificationsOf(ada), all)
  const { statusCode: without } = await inject(bare, 'GET', `/account/unsubscribe/${token}`)
  t.equal(without, 501)
})

t.test('GET /me/notifications shows reminderHours to users who are reminded', async t => {
  const hoursFor = async (user: Person) => (await user.inject('GET', '/me/notifications')).json().reminderHours
  const verified = { email_verified_at: new Date() }
  const [ada, bob] = [await person(app, 'STUDENT', verified), await person(app)]
  t.strictSame([await hoursFor(ada), await hoursFor(bob)], [24, null], 'an email that is not verified gets none')
  await ada.inject('PUT', '/me/notifications', { notifications: { eventReminder: false } })
  t.equal(await hoursFor(ada), null, 'nor does a user who does not want any')
  await ada.inject('PUT', '/me/notifications', { notifications: { eventReminder: true, registration: false } })
  t.equal(await hoursFor(ada), 24)
  for (const other of [bare, await build(t, { ...MAIL, DATABASE_URL, REMINDER_HOURS: '0' })]) {
    t.equal(await hoursFor(await person(other, 'STUDENT', verified)), null, 'a service that sends none')
  }
})

t.test('Such a request may have any small body', async t => {
  const ada = await person(app)
  const path = `/account/unsubscribe/${await writeMail(ada, 'event-reminder')}`
  const parts = '--x\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--x--\r\n'
  for (const [type, body] of [
    ['multipart/form-data; boundary=x', parts], ['application/json', '{'], ['application/json', ''], ['a/b', 'x'],
  ] as const) {
    const { statusCode } = await inject(app, 'POST', path, body, { 'content-type': type })
    t.equal(statusCode, 200, type)
  }
})

t.test('A large form is refused there, and any form elsewhere', async t => {
  // Not one whose responses are compared with the declared ones: these are the framework's.
  const { app: service } = await make(t, { DATABASE_URL })
  const post = async (path: string, body: string) => (await inject(service, 'POST', path, body, FORM)).statusCode
  t.equal(await post('/account/unsubscribe/x', 'x'.repeat(16_385)), 413)
  t.equal(await post('/account/email/verify', 'token=x'), 415)
})

t.test('The link of an email works as long as the account, also without the email', async t => {
  const [ada, bob] = [await person(app), await person(app)]
  const token = unsubscribeToken(app.config, ada.id, 'event-cancelled')
  const all = await notificationsOf(ada)
  const post = (token: string) => inject(app, 'POST', `/account/unsubscribe/${token}`)
  t.equal((await sql`SELECT FROM emails WHERE user_id = ${ada.id}`).length, 0)
  t.equal((await post(token)).statusCode, 200)
  t.strictSame(await notificationsOf(ada), { ...all, eventCancelled: false })
  const wrong = [
    token.replace(/^.{32}/, bob.id.replaceAll('-', '')), token.slice(0, -1), `${token}0`, token.toUpperCase(),
    unsubscribeToken({ JWT_SECRET: 'a different secret, as long as needed' }, ada.id, 'event-cancelled'),
    unsubscribeToken(app.config, ada.id, 'test'),
  ]
  for (const token of wrong) assertMessage(t, await post(token), 404, 'Link not found')
  t.strictSame(await notificationsOf(bob), all)
  await sql`DELETE FROM users WHERE id = ${ada.id}`
  assertMessage(t, await post(token), 404, 'Link not found')
})

t.test('An unknown token is a 404', async t => {
  const token = createSecretToken()
  for (const path of [`/account/unsubscribe/${token}`, '/account/unsubscribe/%00']) {
    const response = await inject(app, 'POST', path)
    t.strictSame([response.statusCode, response.json()], [404, { message: 'Link not found' }], path)
  }
})

/** An event of a club, with an attendee. */
async function makeEvent (club: string) {
  const ada = await person(app, 'STUDENT', { email_verified_at: new Date() })
  const event = await insert(app, 'events', { date: new Date('2999-01-31'), club_id: club })
  await insert(app, 'event_registrations', { user_id: ada.id, event_id: event })
  return event
}

t.test('POST /agenda/:id/message and its path of version 1.0.0 have the same access as the registrations', async t => {
  const [own, other] = [await makeEvent(chess), await makeEvent(go)]
  const head = await person(app, 'CLUB_HEAD', { club_id: chess })
  const admin = await person(app, 'ADMIN')
  const stranger = await person(app, 'CLUB_HEAD')
  for (const path of ['agenda', 'me/events']) {
    for (const [user, id] of [
      [head, own], [head, other], [stranger, own], [head, 'unknown'], [admin, 'unknown'], [admin, other],
    ] as const) {
      const sent = await user.inject('POST', `/${path}/${id}/message`, MESSAGE)
      const seen = await user.inject('GET', `/events/${id}/registrations`)
      t.strictSame([sent.statusCode, sent.json()], seen.statusCode === 200
        ? [202, { message: 'The message is on its way', reach: { reached: 1, notReached: 0 } }]
        : [seen.statusCode, seen.json()])
    }
  }
  assertMessage(t, await head.inject('POST', '/me/events//message', MESSAGE), 400, 'Event ID is required')
  assertInvalid(t, await head.inject('POST', '/agenda//message', MESSAGE), ['id'])
  t.match(await sql`
    SELECT sender_id, subject, text FROM event_messages WHERE event_id IN (${own}, ${other})
    ORDER BY created_at
  `, Array(2).fill([{ ...MESSAGE, sender_id: head.id }, { ...MESSAGE, sender_id: admin.id }]).flat())
})

t.test('A message has a visible text of a minimum and a maximum length', async t => {
  const [id, admin] = [await makeEvent(chess), await person(app, 'ADMIN')]
  for (const wrong of [
    { subject: 'x' }, { subject: 'x'.repeat(201) }, { text: 'x' }, { text: 'x'.repeat(10_001) },
    { text: `${MESSAGE.text}\u0000` }, { subject: '   ' }, { text: '\n\t\u200b'.repeat(5) },
  ]) {
    const { statusCode } = await admin.inject('POST', `/agenda/${id}/message`, { ...MESSAGE, ...wrong })
    t.equal(statusCode, 400)
  }
})

t.test('A user writes five messages within 15 minutes', async t => {
  const [id, admin] = [await makeEvent(chess), await person(app, 'ADMIN')]
  const send = (path: string) => admin.inject('POST', `/${path}/${id}/message`, MESSAGE)
  for (let n = 0; n < 5; n++) t.equal((await send('agenda')).statusCode, 202)
  for (const path of ['agenda', 'me/events']) {
    const response = await send(path)
    t.strictSame([response.statusCode, response.json()], [
      429, { message: 'Too many messages, please try again later' },
    ])
    t.match(response.headers['retry-after'], /^\d+$/)
  }
})

t.test('A message of a deleted user is not sent', async t => {
  const [id, admin] = [await makeEvent(chess), await person(app, 'ADMIN')]
  await sql`DELETE FROM users WHERE id = ${admin.id}`
  t.equal((await admin.inject('POST', `/agenda/${id}/message`, MESSAGE)).statusCode, 404)
})

t.test('A message about an event that is deleted at the same time is a 404', async t => {
  const [id, admin] = [await makeEvent(chess), await person(app, 'ADMIN')]
  const { response } = await sql.begin(async deletion => {
    await deletion`DELETE FROM event_registrations WHERE event_id = ${id}`
    await deletion`DELETE FROM events WHERE id = ${id}`
    const response = admin.inject('POST', `/agenda/${id}/message`, MESSAGE)
    await untilBlocked(sql)
    return { response }
  })
  t.equal((await response).statusCode, 404)
})

t.test('Later messages remove messages that are 60 days old', async t => {
  const [id, admin] = [await makeEvent(chess), await person(app, 'ADMIN')]
  await sql`
    INSERT INTO event_messages (event_id, sender_id, subject, text, created_at)
    VALUES
      (${id}, ${admin.id}, 'past', 'A text', now() - interval '61 days'),
      (${id}, ${admin.id}, 'kept', 'A text', now() - interval '59 days')
  `
  await admin.inject('POST', `/agenda/${id}/message`, MESSAGE)
  const messages = await sql`SELECT subject FROM event_messages WHERE sender_id = ${admin.id} ORDER BY created_at`
  t.strictSame(messages.map(({ subject }) => subject), ['kept', MESSAGE.subject])
})

t.test('Without email nothing is written, and a message is a 501', async t => {
  const [admin, ada] = [await person(bare, 'ADMIN'), await person(bare, 'STUDENT', { email_verified_at: new Date() })]
  const club = await insert(bare, 'clubs')
  const path = `/events/${await insert(bare, 'events', { date: new Date('2999-01-31'), club_id: club })}`
  t.equal((await ada.inject('POST', `${path}/register`)).statusCode, 201)
  t.equal((await admin.inject('PUT', path, { title: 'Morning' })).statusCode, 200)
  t.equal((await admin.inject('DELETE', path)).statusCode, 200)
  for (const path of ['agenda', 'me/events']) {
    assertMessage(t, await admin.inject('POST', `/${path}/x/message`, MESSAGE), 501, 'Email is not configured')
  }
  t.equal((await bare.sql`SELECT id FROM emails UNION ALL SELECT id FROM email_batches`).length, 0)
})

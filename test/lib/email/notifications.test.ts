import { setTimeout as sleep } from 'node:timers/promises'

import nodeIcal from 'node-ical'
import type { Email } from 'postal-mime'

import { eraseUser } from '#lib/accounts/erasure.js'
import { drawDue } from '#lib/agenda/draws.js'
import type { Sql } from '#lib/database/pools.js'
import { formatTime } from '#lib/email/content.js'
import { enqueueBatch, findWork, writeEmails, writeReminders } from '#lib/email/batches.js'
import { claimEmails, listEmails } from '#lib/email/emails.js'
import { tellDraw, tellVerified } from '#lib/email/enqueue-seats.js'
import { Sender, type Transport } from '#lib/email/sender.js'
import { SmtpTransport } from '#lib/email/smtp.js'
import { insertRegistration } from '#routes/events/queries.js'
import { buildWithoutSender, insert, MAIL, type Person, person, testConfig, untilBlocked } from '../../helper.ts'
import { startMailServer } from '../../smtp.ts'
import t, { type Test } from '../../suite.ts'

const PUBLIC_URL = 'https://api.example.org/community/'

// The tests run their own senders.
const app = await buildWithoutSender(t, { ...MAIL, PUBLIC_URL, REMINDER_HOURS: '0' })
const { sql } = app
const admin = await person(app, 'ADMIN')
const [chess, go] = [
  await insert(app, 'clubs', { name: 'Chess Club' }), await insert(app, 'clubs', { name: 'Go Club' }),
]
t.beforeEach(() => sql`TRUNCATE emails, email_batches, event_reminders, event_registrations, events CASCADE`)

/** A user whose email is verified. */
const member = (fields = {}) => person(app, 'STUDENT', { email_verified_at: new Date(), ...fields })

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000)

const makeEvent = (fields = {}) => insert(app, 'events', {
  title: 'Chess Night', description: 'Ten games at once', date: inDays(10), club_id: chess, ...fields,
})

/** Registers people for an event by SQL, which sends no email. */
async function register (event: string, people: Person[], at = new Date()) {
  const rows = people.map(({ id }) => ({ user_id: id, event_id: event, registered_at: at }))
  await sql`INSERT INTO event_registrations ${sql(rows)}`
}

const change = async (event: string, changes: object) =>
  (await admin.inject('PUT', `/events/${event}`, changes)).statusCode

const remove = async (event: string) => (await admin.inject('DELETE', `/events/${event}`)).statusCode

/** Has everything that waits be due. Times have milliseconds: now() may be rounded up. */
async function skipWaiting () {
  await sql`UPDATE email_batches SET due_at = now() - interval '1 s' WHERE due_at <> 'infinity'`
  await sql`UPDATE emails SET due_at = now() - interval '1 s' WHERE status = 'pending'`
}

/** Batches that are not written yet. */
const waiting = async () => (await sql`SELECT FROM email_batches WHERE due_at <> 'infinity'`).length

/** Writes the emails of all batches, as if the emails before were being sent. */
async function writeAllEmails () {
  while (await waiting() > 0) {
    await sql`UPDATE emails SET due_at = now() + interval '1 hour' WHERE status = 'pending'`
    await writeEmails(sql)
  }
  await sql`UPDATE emails SET due_at = now() - interval '1 ms' WHERE status = 'pending'`
}

/** A sender tries to tell these changes of an event. Without an outcome, it gets no response. */
async function tryToTell (changes: object, outcome = sql``) {
  await skipWaiting()
  await writeAllEmails()
  await sql`
    UPDATE emails SET
      attempts = 1, claimed_at = now(), ${outcome}
      data = data || jsonb_build_object('announced', data -> 'known' || ${JSON.stringify(changes)}::text::jsonb)
    WHERE template = 'event-changed' AND status = 'pending'
  `
}

/** Sends everything that is in the outbox. Returns the emails, sorted by their address and subject. */
async function deliver (t: Test, variables: NodeJS.Dict<string> = {}) {
  await skipWaiting()
  return deliverDue(t, variables)
}

/** The same, but for batches that wait. */
async function deliverDue (t: Test, variables: NodeJS.Dict<string> = {}) {
  const server = await startMailServer(t)
  const config = testConfig({
    ...MAIL, PUBLIC_URL, SMTP_URL: server.url, MAIL_RATE: '6000', REMINDER_HOURS: '0', ...variables,
  })
  const sender = new Sender({
    sql,
    config,
    log: { info () {}, warn () {}, error (error: unknown) { t.fail('a tick fails', { error }) } },
    transport: new SmtpTransport(config),
  }, { tick: 20, pause: { first: 20, longest: 40 }, stop: 100 })
  sender.start()
  const isDone = async () => {
    // Asked first: reminders become batches, and batches become emails.
    const { reminder } = await findWork(sql, config.REMINDER_HOURS)
    const [left] = await sql`
      SELECT FROM emails WHERE status = 'pending' UNION ALL SELECT FROM email_batches WHERE due_at <= now()
    `
    return !reminder && !left
  }
  for (let n = 0; !await isDone(); n++) {
    if (n > 1000) throw new Error(`Not sent: ${JSON.stringify(await listEmails(sql))}`)
    await sleep(20)
  }
  await sender.stop()
  const emails = server.emails.map(async ({ to }, n) => ({ ...await server.parse(n), address: to[0]! }))
  return (await Promise.all(emails)).sort((a, b) => `${a.address} ${a.subject}` < `${b.address} ${b.subject}` ? -1 : 1)
}

/** The addresses and subjects of emails. */
const headOf = ({ address, subject }: { address: string, subject?: string }) => [address, subject]

const header = ({ headers }: Email, name: string) => headers.find(({ key }) => key === name)?.value

/** The iCalendar of an email: as a part for email programs, and as a file for people. */
function calendarOf (t: Test, { attachments }: Email) {
  const decode = (content: unknown) => new TextDecoder().decode(content as ArrayBuffer)
  t.equal(attachments.length, 2)
  const [part, file] = attachments
  t.equal(file!.filename, 'event.ics')
  t.equal(decode(part!.content), decode(file!.content))
  t.match(part!.mimeType, 'text/calendar')
  return decode(part!.content).replaceAll('\r\n', '\n')
}

/** The events of a calendar program that takes in these iCalendars (RFC 5546). */
function eventsOf (calendars: string[]) {
  const events = new Map<string, { sequence: number, start: string, summary: string }>()
  for (const text of calendars) {
    const event = Object.values(nodeIcal.sync.parseICS(text)).find(part => part?.type === 'VEVENT') as nodeIcal.VEvent
    const [sequence, known] = [Number(event.sequence), events.get(event.uid)]
    if (known && known.sequence >= sequence) continue
    if (event.method === 'CANCEL') events.delete(event.uid)
    else events.set(event.uid, { sequence, start: event.start.toISOString(), summary: String(event.summary) })
  }
  return [...events.values()]
}

t.test('A registration is confirmed with the event for calendars', async t => {
  const event = await makeEvent({ title: 'Chess <Night>', date: new Date('2999-01-31T18:30:00Z') })
  const ada = await member()
  t.equal((await ada.inject('POST', `/events/${event}/register`)).statusCode, 201)
  t.equal((await ada.inject('POST', `/events/${event}/register`)).statusCode, 400)
  const [email, ...others] = await deliver(t, { MAIL_TIME_ZONE: 'Europe/Berlin' })
  t.strictSame([email!.address, others], [ada.email, []])
  t.match(email, {
    subject: 'You are registered: Chess <Night>',
    text: /^You are registered for “Chess <Night>” of Chess Club, on Thursday,? 31 January 2999 at 19:30 CET\.$/m,
    html: 'Chess &lt;Night&gt;',
  })
  t.match(calendarOf(t, email!), new RegExp(`METHOD:PUBLISH\n.*UID:${event}\nSEQUENCE:0\n`, 's'))
})

t.test('A confirmation tells when the reminder comes', async t => {
  const event = await makeEvent({ date: new Date('2999-04-01T10:00:00Z') })
  const soon = await makeEvent({ date: inDays(0.9) })
  const [ada, grace] = [await member(), await member()]
  await grace.inject('PUT', '/me/notifications', { notifications: { eventReminder: false } })
  const confirm = async (user: Person, event: string, REMINDER_HOURS = '24') => {
    await user.inject('POST', `/events/${event}/register`)
    const [email] = await deliver(t, { REMINDER_HOURS, MAIL_TIME_ZONE: 'Europe/Berlin' })
    return email
  }
  const reminder = /You will be reminded on Sunday,? 31 March 2999 at 12:00 CEST\./
  t.match(await confirm(ada, event), { text: reminder, html: reminder })
  const none = { text: /^You are registered for .*\.\n\nOpen the attached file/ }
  t.match(await confirm(grace, event), none, 'if it is wanted')
  t.match(await confirm(ada, soon), none, 'if there is time')
  t.match(await confirm(await member(), event, '0'), none, 'if there are any')
})

t.test('A notification says how to turn it off', async t => {
  const event = await makeEvent()
  const ada = await member()
  await ada.inject('POST', `/events/${event}/register`)
  const [email] = await deliver(t)
  const footer = /^-- \n.+\n\nUnsubscribe from these emails:\nhttps:\/\/app.example.org\/unsubscribe#token=(\w{64})\n/m
  const [, token] = footer.exec(email!.text!)!
  t.match(email!.html, '<footer>\n<p>You received this email because you have an account at Community.</p>\n<p><a href')
  t.equal(header(email!, 'list-unsubscribe'), `<https://api.example.org/community/account/unsubscribe/${token}>`)
  t.equal(header(email!, 'list-unsubscribe-post'), 'List-Unsubscribe=One-Click')
  t.equal(header(email!, 'list-id'), '<registration.example.org>')
  t.notMatch(JSON.stringify(await sql`SELECT * FROM emails`), token, 'only its hash is stored')
})

t.test('Without PUBLIC_URL and FRONTEND_URL there are no such links', async t => {
  const event = await makeEvent()
  const ada = await member()
  await ada.inject('POST', `/events/${event}/register`)
  const [email] = await deliver(t, { FRONTEND_URL: '', PUBLIC_URL: '' })
  t.match(email!.text, /-- \nYou received this email because you have an account at Community\.\n+$/)
  t.equal(header(email!, 'list-unsubscribe'), undefined)
  t.notMatch(calendarOf(t, email!), 'URL:')
})

t.test('Notifications go to verified addresses that want them', async t => {
  const event = await makeEvent()
  const [ada, grace, eve] = [await member(), await member(), await person(app)]
  await grace.inject('PUT', '/me/notifications', { notifications: { registration: false } })
  for (const user of [ada, grace, eve]) await user.inject('POST', `/events/${event}/register`)
  t.match(await listEmails(sql), [{ userId: ada.id }])
  // The user wants it when it is written, and no longer when it is sent.
  await ada.inject('PUT', '/me/notifications', { notifications: { registration: false } })
  t.strictSame(await deliver(t), [])
  t.equal((await listEmails(sql)).length, 0)
})

t.test('A deleted registration gets neither confirmation nor change', async t => {
  const event = await makeEvent()
  await (await member()).inject('POST', `/events/${event}/register`)
  await change(event, { title: 'Go Night' })
  await sql`DELETE FROM event_registrations`
  t.strictSame(await deliver(t), [])
})

t.test('A registration for an event that is over is not confirmed', async t => {
  const hours = (count: number) => inDays(count / 24)
  const ada = await member()
  for (const [date, meanwhile, emails] of [[1, -1, 1], [-1, -1, 1], [1, -3, 0], [-3, -3, 0]] as const) {
    const event = await makeEvent({ date: hours(date) })
    await ada.inject('POST', `/events/${event}/register`)
    await sql`UPDATE events SET date = ${hours(meanwhile)} WHERE id = ${event}`
    t.equal((await deliver(t)).length, emails, `${date} h from now, and ${meanwhile} h when it is sent`)
  }
  t.equal((await listEmails(sql)).length, 0)
})

t.test('A change of title, date or club is sent to all who are registered', async t => {
  const event = await makeEvent({ date: new Date('2999-01-31T18:30:00Z') })
  const people = [await member(), await member(), await person(app)]
  await register(event, people)
  await register(await makeEvent(), [await member()])
  t.equal(await change(event, { title: 'Go Night', data: '2999-02-01T18:30:00Z', clubId: go }), 200)
  const emails = await deliver(t)
  t.strictSame(emails.map(headOf), [people[0]!, people[1]!].map(({ email }) => [email, 'Changed: Go Night']).sort())
  t.equal(emails[0]!.text!.split('\n-- ')[0]!.replaceAll('day,', 'day'), [
    '“Chess Night” has changed. You are registered for it.',
    'New title: “Go Night”.',
    'New date: Friday 1 February 2999 at 18:30 UTC (was Thursday 31 January 2999 at 18:30 UTC).',
    'New organizer: Go Club (was Chess Club).',
    'If the event is in your calendar, open the attached file to update it.',
    `Open the page of the event:\nhttps://app.example.org/events/${event}\n`,
  ].join('\n\n'))
  t.match(calendarOf(t, emails[0]!), /SEQUENCE:1\n/)
})

t.test('Emails tell who has a seat, and nobody is told twice', async t => {
  const event = await makeEvent()
  const admin = await person(app, 'ADMIN')
  const [ada, bob, cleo] = [await member(), await member(), await member()]
  const set = (details: object) => admin.inject('PUT', `/agenda/${event}`, details)
  const answer = (who: Person, coming: boolean) => who.inject('PUT', `/me/seats/${event}`, { coming })
  const told = (emails: Awaited<ReturnType<typeof deliver>>) => emails.map(({ address, subject, text }) =>
    [address, subject, ...text!.match(/You (do not )?have a seat( yet: you are .*)?\.|(?<=Place: ).*/g) ?? []])
  await set({ capacity: 1, place: 'Room 1', endsAt: new Date(Date.now() + 12 * 86_400_000).toISOString() })
  for (const who of [ada, bob, cleo]) await who.inject('POST', `/events/${event}/register`)
  const confirmations = await deliver(t)
  const wait = (position: number) => `You do not have a seat yet: you are number ${position} in line.`
  const subject = 'You are registered: Chess Night'
  const waits = 'You are waiting for a seat: Chess Night'
  t.strictSame(told(confirmations).sort(), [
    [ada.email, subject, 'You have a seat.', 'Room 1.'], [bob.email, waits, wait(1), 'Room 1.'],
    [cleo.email, waits, wait(2), 'Room 1.'],
  ].sort())
  const status = (email: Email) => /STATUS:(.*)/.exec(calendarOf(t, email))![1]
  t.strictSame(confirmations.map(status).sort(), ['CONFIRMED', 'TENTATIVE', 'TENTATIVE'])
  t.match(calendarOf(t, confirmations[0]!), new RegExp(`DTEND:.*LOCATION:Room 1.*/events/${event}`, 's'))
  t.match(confirmations[0]!.text, `https://app.example.org/events/${event}`)

  await answer(ada, false)
  const seated = await deliver(t)
  t.strictSame(seated.map(headOf), [[bob.email, 'You have a seat: Chess Night']])
  t.equal(status(seated[0]!), 'CONFIRMED')
  for (const coming of [true, false, true, false]) await answer(ada, coming)
  t.strictSame(await deliver(t), [])

  // After a late confirmation, a person gets no second email.
  const dan = await member()
  await dan.inject('POST', `/events/${event}/register`)
  await set({ capacity: 3 })
  const late = [...await deliver(t), ...await deliver(t)]
  t.strictSame(told(late).sort(), [
    [cleo.email, 'You have a seat: Chess Night', 'Room 1.'], [dan.email, subject, 'You have a seat.', 'Room 1.'],
  ].sort())

  // Who does not come is told about a new date only.
  await set({ place: 'Room 2', endsAt: null })
  await skipWaiting()
  const moved = await deliver(t)
  t.strictSame(moved.map(({ address }) => address).sort(), [bob, cleo, dan].map(({ email }) => email).sort())
  t.match(moved[0]!.text, /The event has no end any more\.\n\nNew place: Room 2\./)
  await set({ place: null, endsAt: '2998-01-01T00:00:00Z' })
  await change(event, { data: '2998-01-01T00:00:00Z' })
  await skipWaiting()
  const news = await deliver(t)
  const toAda = news.find(({ address }) => address === ada.email)!
  t.match(toAda.text, 'You said that you cannot come.')
  t.strictSame([news.length, toAda.attachments], [4, []])
  t.match(news.find(({ address }) => address === bob.email)!.text, /New end: .*The event has no place any more/s)

  // Somebody is taken off the list.
  const seats = (await admin.inject('GET', `/agenda/${event}/seats`)).json().seats
  const remove = (who: Person) => {
    const { registrationId } = seats.find(({ userId }: { userId: string }) => userId === who.id)
    return admin.inject('DELETE', `/agenda/${event}/seats/${registrationId}`)
  }
  await remove(bob)
  await remove(cleo)
  await cleo.inject('POST', `/events/${event}/register`)
  const removed = await deliver(t)
  t.strictSame(removed.map(headOf).sort(), [
    [bob.email, 'You are no longer registered: Chess Night'], [cleo.email, subject],
  ].sort())
  t.match(calendarOf(t, removed.find(({ address }) => address === bob.email)!), 'STATUS:CANCELLED')
})

t.test('Emails tell who takes part in a draw, a new time, and the result once', async t => {
  const event = await makeEvent()
  const people = [await member(), await member(), await member()]
  const set = (details: object) => admin.inject('PUT', `/agenda/${event}`, details)
  const status = (email: Email) => /STATUS:(.*)/.exec(calendarOf(t, email))![1]
  await set({ capacity: 2, drawAt: '2998-01-01T10:00:00Z', place: 'Room 1', date: '2999-01-31T18:30:00Z' })
  for (const who of people) await who.inject('POST', `/events/${event}/register`)
  const confirmations = await deliver(t)
  t.strictSame(confirmations.map(({ subject }) => subject), Array(3).fill('You take part in the draw: Chess Night'))
  t.strictSame(confirmations.map(status), Array(3).fill('TENTATIVE'))
  t.match(confirmations[0]!.text, /^You take part in the draw of seats at “Chess Night” of Chess Club, on /)
  t.match(confirmations[0]!.text, /^The seats are drawn on Monday,? 1 January 2998 at 10:00 UTC\. You get an email/m)

  await set({ drawAt: '2998-01-02T10:00:00Z' })
  await skipWaiting()
  const [moved, ...others] = await deliver(t)
  t.strictSame(others.length, 2)
  t.match(moved, { subject: 'Changed: Chess Night', text: /has changed\. You take part in the draw of seats\.$/m })
  t.match(moved!.text, /^New time of the draw: Tuesday,? 2 January 2998 at 10:00 UTC \(was Monday,? 1 January 2998 at/m)

  const dan = await member()
  await dan.inject('POST', `/events/${event}/register`)
  await sql`UPDATE event_details SET draw_at = now() WHERE event_id = ${event}`
  await drawDue({ sql, log: app.log, tell: tellDraw(app.outbox) })
  const { seats } = (await admin.inject('GET', `/agenda/${event}/seats`)).json()
  const results = [...await deliver(t), ...await deliver(t)]
  t.strictSame(results.map(headOf).sort(), seats.map(({ email, state }: { email: string, state: string }) => {
    if (state === 'waiting') return [email, 'You are waiting for a seat: Chess Night']
    return [email, `${email === dan.email ? 'You are registered' : 'You have a seat'}: Chess Night`]
  }).sort(), 'the confirmation tells the result')
  for (const email of results) {
    if (email.address === dan.email) continue
    const isSeated = email.subject!.startsWith('You have')
    t.match(email.text, /^The seats have been drawn\.$/m)
    t.match(email.text, isSeated
      ? /^You have a seat at “Chess Night”/m
      : /^You do not have a seat yet: you are number \d in line\.$/m)
    t.match(email.text, `https://app.example.org/events/${event}/draw`)
    t.equal(status(email), isSeated ? 'CONFIRMED' : 'TENTATIVE')
    t.ok(header(email, 'list-unsubscribe'))
  }

  const first = [...people, dan].find(({ id }) => id === seats[0].userId)!
  await first.inject('PUT', `/me/seats/${event}`, { coming: false })
  const next = await deliver(t)
  t.strictSame(next.map(headOf), [[seats[2].email, 'You have a seat: Chess Night']], 'who moves up is told')
})

t.test('A person who comes back into a draw is told its time, and a new one', async t => {
  const [event, ada] = [await makeEvent(), await member()]
  const set = (details: object) => admin.inject('PUT', `/agenda/${event}`, details)
  await ada.inject('POST', `/events/${event}/register`)
  await deliver(t)
  await set({ capacity: 1, drawAt: inDays(5) })
  for (const coming of [false, true]) await ada.inject('PUT', `/me/seats/${event}`, { coming })
  t.match(await deliver(t), [{ text: /has changed\. You take part in the draw of seats\.\n\nThe seats are drawn on / }])
  await set({ drawAt: inDays(6) })
  t.match(await deliver(t), [{ subject: 'Changed: Chess Night', text: /New time of the draw: / }])
})

t.test('Emails tell when registration opens and closes, and when free seats are drawn', async t => {
  const event = await makeEvent({ date: new Date('2999-01-31T18:30:00Z') })
  const set = (details: object) => admin.inject('PUT', `/agenda/${event}`, details)
  const times = async () => (await deliver(t)).map(({ text }) =>
    text!.replaceAll('day,', 'day').match(/^(?:Registration|The free seats|New time of the draw).*$/gm))
  await set({ capacity: 1, closesAt: '2997-01-01T10:00:00Z' })
  for (const who of [await member(), await member()]) await who.inject('POST', `/events/${event}/register`)
  const closes = 'Registration closes on Sunday 1 January 2997 at 10:00 UTC.'
  t.strictSame(await times(), [[closes], [closes]])
  await set({ opensAt: '2996-01-01T10:00:00Z', closesAt: '2997-01-02T10:00:00Z', drawAt: '2998-01-01T10:00:00Z' })
  const news = [
    'The free seats will be drawn on Monday 1 January 2998 at 10:00 UTC.',
    'Registration opens on Friday 1 January 2996 at 10:00 UTC.',
    'Registration closes on Monday 2 January 2997 at 10:00 UTC (was Sunday 1 January 2997 at 10:00 UTC).',
  ]
  t.strictSame(await times(), [news, news], 'to people with a seat and in line')
  await set({ drawAt: '2998-01-02T10:00:00Z' })
  const moved =
    'New time of the draw: Tuesday 2 January 2998 at 10:00 UTC (was Monday 1 January 2998 at 10:00 UTC).'
  t.strictSame(await times(), [[moved], [moved]])
  await set({ drawAt: null, opensAt: null, closesAt: null })
  t.strictSame(await times(), [], 'nothing if they are removed')
  await set({ closesAt: '2020-01-01T10:00:00Z' })
  t.strictSame(await times(), [], 'or past')
})

t.test('Nobody is told about a draw that is of no use to them any more', async t => {
  const [event, past] = [await makeEvent(), await makeEvent()]
  const [ada, bob] = [await member(), await member()]
  for (const id of [event, past]) {
    await admin.inject('PUT', `/agenda/${id}`, { capacity: 1, drawAt: inDays(5) })
    for (const who of [ada, bob]) await who.inject('POST', `/events/${id}/register`)
  }
  await deliver(t)
  await sql`UPDATE event_details SET draw_at = now()`
  await drawDue({ sql, log: app.log, tell: tellDraw(app.outbox) })
  for (const who of [ada, bob]) await who.inject('PUT', `/me/seats/${event}`, { coming: false })
  await sql`UPDATE events SET date = '2020-01-01' WHERE id = ${past}`
  t.strictSame(await deliver(t), [])
  await change(past, { data: inDays(20).toISOString() })
  const emails = [...await deliver(t), ...await deliver(t)]
  // The email about the change, or the email about the draw if it is a millisecond earlier
  const seat = /(?:changed\. |^)(You have a seat|You do not have a seat yet)/m
  const seats = emails.map(({ text }) => seat.exec(text!)?.[1])
  t.strictSame(seats.sort(), ['You do not have a seat yet', 'You have a seat'], 'but when the date is right again')
})

t.test('The result of a draw while a wrong date lay in the past is told when the date is right again', async t => {
  const right = inDays(10).toISOString()
  for (const isTold of [false, true]) {
    const event = await makeEvent()
    const [ada, bob, cleo] = [await member(), await member(), await member()]
    await admin.inject('PUT', `/agenda/${event}`, { date: right, capacity: 1, drawAt: inDays(5) })
    for (const who of [ada, bob, cleo]) await who.inject('POST', `/events/${event}/register`)
    await deliver(t)
    await change(event, { data: '2020-01-05T18:30:00.000Z' })
    await sql`UPDATE event_details SET draw_at = now() WHERE event_id = ${event}`
    await drawDue({ sql, log: app.log, tell: tellDraw(app.outbox) })
    if (isTold) t.strictSame(await deliverDue(t), [])
    await cleo.inject('PUT', `/me/seats/${event}`, { coming: false })
    await change(event, { data: right })
    const { seats } = (await admin.inject('GET', `/agenda/${event}/seats`)).json()
    const expected = seats.filter(({ state }: { state: string }) => state !== 'declined')
      .map(({ email, state }: { email: string, state: string }) => [
        email, `${state === 'seated' ? 'You have a seat' : 'You are waiting for a seat'}: Chess Night`,
      ])
    t.strictSame([...await deliverDue(t), ...await deliver(t)].map(headOf).sort(), expected.sort())
  }
})

/** The subject of each email by its address, and whether its text and calendar contain the link. */
const linksOf = (t: Test, emails: Awaited<ReturnType<typeof deliver>>, link: string) => emails
  .map(email => [email.address, email.subject, ...[
    email.text!, ...email.attachments.length > 0 ? [calendarOf(t, email).replaceAll('\n ', '')] : [],
  ].map(text => text.includes(link))])

t.test('The online link goes to people with a seat, and a new one as well', async t => {
  const event = await makeEvent({ date: inDays(0.9) })
  const [ada, bob] = [await member(), await member()]
  const set = (details: object) => admin.inject('PUT', `/agenda/${event}`, details)
  const [first, second] = ['https://meet.example.org/1', 'https://meet.example.org/2']
  await set({ capacity: 1, onlineUrl: first })
  for (const who of [ada, bob]) await who.inject('POST', `/events/${event}/register`)
  t.strictSame(linksOf(t, await deliver(t), first).sort(), [
    [ada.email, 'You are registered: Chess Night', true, true],
    [bob.email, 'You are waiting for a seat: Chess Night', false, false],
  ].sort())

  await set({ onlineUrl: second })
  const [change, ...others] = await deliver(t)
  t.strictSame(others, [])
  t.match(change, { address: ada.email, text: `New online link:\n${second}\n` })
  t.strictSame(linksOf(t, [change!], second), [[ada.email, 'Changed: Chess Night', true, true]])
  await set({ place: 'Room 1' })
  t.strictSame((await deliver(t)).filter(({ text }) => text!.includes('meet.example.org')), [],
    'an email about a place tells nobody a link again, and a person who waits none')

  await ada.inject('PUT', `/me/seats/${event}`, { coming: false })
  t.strictSame(linksOf(t, await deliver(t), second), [[bob.email, 'You have a seat: Chess Night', true, true]])
  await sql`UPDATE event_registrations SET registered_at = now() - interval '2 days'`
  t.strictSame(linksOf(t, await deliver(t, { REMINDER_HOURS: '24' }), second),
    [[bob.email, 'Reminder: Chess Night', true]])
  await set({ onlineUrl: null })
  t.match(await deliver(t), [{ address: bob.email, text: 'The event is not online any more.' }])
})

t.test('Emails tell the end, and a reminder to a person who waits says so', async t => {
  const [start, end] = ['2999-01-31T22:30:00.000Z', '2999-01-31T23:15:00.000Z']
  const event = await makeEvent({ date: new Date(start) })
  const people = [await member(), await member()]
  await admin.inject('PUT', `/agenda/${event}`, { capacity: 1, endsAt: end })
  for (const who of people) await who.inject('POST', `/events/${event}/register`)
  const zones = { UTC: 'at 22:30 UTC until 23:15 UTC', 'Europe/Berlin': 'at 23:30 CET until Friday' }
  for (const [zone, words] of Object.entries(zones)) {
    await sql`UPDATE emails SET status = 'pending', attempts = 0`
    for (const { text } of await deliver(t, { MAIL_TIME_ZONE: zone })) t.match(text, words)
  }
  await change(event, { title: 'Go Night' })
  for (const { text } of await deliver(t)) t.match(text, /Date: .* at 22:30 UTC until 23:15 UTC\./)
  await change(event, { data: '2999-02-01T22:30:00.000Z' })
  const moved = /New date: .* until 23:15 UTC \(was .* at 22:30 UTC until 23:15 UTC\)\./
  for (const { text } of await deliver(t)) t.match(text, moved)
  await remove(event)
  for (const { text } of await deliver(t)) t.match(text, 'until 23:15 UTC, has been cancelled.')

  const soon = await makeEvent({ date: inDays(0.9) })
  await admin.inject('PUT', `/agenda/${soon}`, { capacity: 1 })
  await register(soon, people, inDays(-2))
  t.strictSame((await deliver(t, { REMINDER_HOURS: '24' })).map(({ subject }) => subject).sort(),
    ['Reminder: Chess Night', 'You are still waiting for a seat: Chess Night'])
})

t.test('A cancellation and a removal name the date that the person was last told', async t => {
  const [fifth, twelfth] = ['2999-01-05T18:30:00.000Z', '2999-01-12T18:30:00.000Z']
  for (const isTold of [false, true]) {
    for (const end of ['deleted', 'removed']) {
      const event = await makeEvent({ date: new Date(fifth) })
      // Bob registers after the move. Eve gets emails since then, so none has told her the date.
      const [ada, bob, eve] = [await member(), await member(), await person(app)]
      for (const who of [ada, eve]) await who.inject('POST', `/events/${event}/register`)
      if (isTold) await deliver(t)
      await sql`UPDATE users SET email_verified_at = now() WHERE id = ${eve.id}`
      await change(event, { data: twelfth })
      await bob.inject('POST', `/events/${event}/register`)
      await deliverDue(t)
      const seats = (await admin.inject('GET', `/agenda/${event}/seats`)).json().seats
      if (end === 'deleted') await remove(event)
      else {
        for (const { registrationId } of seats) await admin.inject('DELETE', `/agenda/${event}/seats/${registrationId}`)
      }
      const emails = await deliver(t)
      const days = emails.map(email => [
        email.address, /\b\d+ January/.exec(email.text!)![0], /DTSTART:(.*)/.exec(calendarOf(t, email))![1],
      ])
      t.strictSame(days.sort(), [
        // Her confirmation was sent after the move.
        isTold ? [ada.email, '5 January', '29990105T183000Z'] : [ada.email, '12 January', '29990112T183000Z'],
        [bob.email, '12 January', '29990112T183000Z'], [eve.email, '5 January', '29990105T183000Z'],
      ].sort(), `${end} ${isTold}`)
    }
  }
})

t.test('An event that was moved to the past by mistake is cancelled for those who know its old date', async t => {
  const event = await makeEvent({ date: new Date('2999-01-05T18:30:00.000Z') })
  const ada = await member()
  await ada.inject('POST', `/events/${event}/register`)
  await deliver(t)
  await change(event, { data: '2020-01-05T18:30:00.000Z' })
  await remove(event)
  t.match(await deliver(t), [{ subject: 'Cancelled: Chess Night', text: '5 January 2999' }])
})

t.test('A change back is told to a person who has registered in between, and does not come', async t => {
  const [fifth, twelfth] = ['2999-01-05T18:30:00.000Z', '2999-01-12T18:30:00.000Z']
  const event = await makeEvent({ date: new Date(fifth) })
  const [ada, bob] = [await member(), await member()]
  const registerOnly = async () => {
    await ada.inject('POST', `/events/${event}/register`)
    await ada.inject('PUT', `/me/seats/${event}`, { coming: false })
  }
  const told = async () => (await deliver(t)).map(({ address, text }) =>
    [address, /Date: .*?\b(\d+ January)/i.exec(text!)?.[1]])
  await register(event, [bob])
  await change(event, { data: twelfth })
  await registerOnly()
  await change(event, { data: fifth })
  t.strictSame(await told(), [[ada.email, '5 January']], 'between changes that share an email')

  const { seats } = (await admin.inject('GET', `/agenda/${event}/seats`)).json()
  for (const { registrationId } of seats) await admin.inject('DELETE', `/agenda/${event}/seats/${registrationId}`)
  await change(event, { data: twelfth })
  await deliver(t)
  await registerOnly()
  await change(event, { data: fifth })
  t.strictSame(await told(), [[ada.email, '5 January']], 'again, after an email about an earlier registration')
})

t.test('Somebody who had said that they do not come is not told about a removal', async t => {
  const event = await makeEvent()
  const [ada, bob] = [await member(), await member()]
  for (const who of [ada, bob]) await who.inject('POST', `/events/${event}/register`)
  await deliver(t)
  await ada.inject('PUT', `/me/seats/${event}`, { coming: false })
  for (const { registrationId } of (await admin.inject('GET', `/agenda/${event}/seats`)).json().seats) {
    await admin.inject('DELETE', `/agenda/${event}/seats/${registrationId}`)
  }
  t.strictSame((await deliver(t)).map(headOf), [[bob.email, 'You are no longer registered: Chess Night']])
})

t.test('A seat that was got while a wrong date lay in the past is told when the date is right again', async t => {
  const [wrong, right] = ['2020-01-05T18:30:00.000Z', '2999-01-05T18:30:00.000Z']
  const set = (event: string, details: object) => admin.inject('PUT', `/agenda/${event}`, details)
  const mends: Record<string, [(event: string) => Promise<unknown>, (event: string) => Promise<unknown>]> = {
    date: [event => change(event, { data: wrong }), event => change(event, { data: right })],
    end: [
      event => sql`UPDATE events SET date = now() - interval '5 hours' WHERE id = ${event}`,
      event => set(event, { endsAt: inDays(1).toISOString() }),
    ],
  }
  for (const [name, [spoil, mend]] of Object.entries(mends)) {
    for (const isTold of [false, true]) {
      const event = await makeEvent({ date: new Date(right) })
      const [ada, bob, cleo] = [await member(), await member(), await member()]
      await set(event, { capacity: 1 })
      for (const who of [ada, bob, cleo]) await who.inject('POST', `/events/${event}/register`)
      await deliver(t)
      await spoil(event)
      if (isTold) await deliver(t)
      await set(event, { capacity: 2 })
      await deliverDue(t)
      await mend(event)
      const emails = [...await deliverDue(t), ...await deliver(t)]
      t.strictSame(emails.filter(({ subject }) => subject!.startsWith('You have a seat')).map(headOf),
        [[bob.email, 'You have a seat: Chess Night']], `${name} ${isTold}`)
      await set(event, { capacity: null })
      t.strictSame((await deliver(t)).map(headOf), [[cleo.email, 'You have a seat: Chess Night']])
    }
  }
})

t.test('Emails to one person about one event that wait together tell each fact once', async t => {
  const event = await makeEvent()
  const [ada, bob] = [await member(), await member()]
  const set = (details: object) => admin.inject('PUT', `/agenda/${event}`, details)
  await set({ capacity: 1 })
  for (const who of [ada, bob]) await who.inject('POST', `/events/${event}/register`)
  await set({ place: 'Room 1' })
  await skipWaiting()
  await writeAllEmails()
  t.strictSame((await deliver(t)).map(headOf).sort(), [
    [ada.email, 'You are registered: Chess Night'], [bob.email, 'You are waiting for a seat: Chess Night'],
  ].sort())

  // The email about the change is due before the email about the seat.
  await set({ place: 'Room 2', capacity: null })
  await skipWaiting()
  await writeAllEmails()
  await sql`UPDATE emails SET due_at = now() - interval '1 s' WHERE template = 'event-changed'`
  const changed = (await deliverDue(t)).map(({ address, text }) => [address, /has changed\. (.*\.)/.exec(text!)![1]])
  t.strictSame(changed.sort(), [[ada.email, 'You are registered for it.'], [bob.email, 'You have a seat.']].sort())
  t.strictSame(await deliver(t), [])
})

t.test('Who registers while a wrong date lies in the past is told when the date is right again', async t => {
  const event = await makeEvent()
  const [ada, bob, cleo] = [await member(), await member(), await member()]
  await admin.inject('PUT', `/agenda/${event}`, { capacity: 1 })
  await ada.inject('POST', `/events/${event}/register`)
  await deliver(t)
  for (const mend of [
    () => change(event, { data: inDays(9).toISOString() }),
    () => admin.inject('PUT', `/agenda/${event}`, { date: inDays(8).toISOString() }),
  ]) {
    await change(event, { data: '2020-01-05T18:30:00.000Z' })
    for (const who of [bob, cleo]) await who.inject('POST', `/events/${event}/register`)
    t.strictSame(await deliverDue(t), [])
    await mend()
    t.strictSame((await deliverDue(t)).map(headOf).sort(), [bob, cleo]
      .map(({ email }) => [email, 'You are waiting for a seat: Chess Night']).sort())
    for (const { userId, registrationId } of (await admin.inject('GET', `/agenda/${event}/seats`)).json().seats) {
      if (userId !== ada.id) await admin.inject('DELETE', `/agenda/${event}/seats/${registrationId}`)
    }
    await deliver(t)
  }
})

t.test('A person who comes back into a free seat gets its email if the last one said wait', async t => {
  const event = await makeEvent()
  const [ada, bob] = [await member(), await member()]
  const answer = (who: Person, coming: boolean) => who.inject('PUT', `/me/seats/${event}`, { coming })
  const onlineUrl = 'https://meet.example.org/1'
  await admin.inject('PUT', `/agenda/${event}`, { capacity: 1, onlineUrl })
  for (const who of [ada, bob]) await who.inject('POST', `/events/${event}/register`)
  await deliver(t)
  await answer(bob, false)
  await answer(ada, false)
  t.strictSame(await deliver(t), [])
  await answer(bob, true)
  t.match(await deliver(t), [{ address: bob.email, subject: 'You have a seat: Chess Night', text: onlineUrl }])
  for (const coming of [false, true]) await answer(bob, coming)
  t.strictSame(await deliver(t), [])
})

t.test('A cancellation names the date of a change that may have arrived, not of a refused one', async t => {
  for (const status of ['451 4.3.0 later', undefined]) {
    const event = await makeEvent({ date: new Date('2999-01-05T18:30:00.000Z') })
    const ada = await member()
    await ada.inject('POST', `/events/${event}/register`)
    await deliver(t)
    await change(event, { data: '2999-01-12T18:30:00.000Z' })
    await skipWaiting()
    await writeAllEmails()
    const [email] = await claimEmails(sql, { account: 0, bulk: 1 })
    const transport: Transport = {
      async verify () {},
      close () {},
      send: async () => ({ status: 'pending', error: 'lost', mayHaveArrived: !status }),
    }
    await sql`UPDATE emails SET due_at = now() WHERE id = ${email!.id}`
    const sender = new Sender({
      sql,
      config: testConfig({ ...MAIL, JWT_SECRET: 'x'.repeat(32) }),
      log: { info () {}, warn () {}, error () {} },
      transport,
    }, { tick: 5, pause: { first: 20, longest: 40 }, stop: 100 })
    sender.start()
    while (!(await sql`SELECT FROM emails WHERE status = 'pending' AND error = 'lost'`).count) await sleep(5)
    await sender.stop()
    await remove(event)
    const [cancelled, ...others] = await deliver(t)
    t.strictSame(others, [])
    t.match(cancelled!.text, status ? '5 January' : '12 January')
  }
})

t.test('A person who comes after all is told what changed while they did not come', async t => {
  const event = await makeEvent()
  const ada = await member()
  const answer = (coming: boolean) => ada.inject('PUT', `/me/seats/${event}`, { coming })
  await admin.inject('PUT', `/agenda/${event}`, { place: 'Room 1' })
  await ada.inject('POST', `/events/${event}/register`)
  await deliver(t)
  for (const coming of [false, true]) await answer(coming)
  t.strictSame(await deliver(t), [], 'nothing')
  await answer(false)
  await admin.inject('PUT', `/agenda/${event}`, { place: 'Room 2' })
  t.strictSame(await deliver(t), [])
  await answer(true)
  t.match(await deliver(t), [{ subject: 'Changed: Chess Night', text: 'New place: Room 2.' }])
})

t.test('Texts of people have a direction of their own in HTML', async t => {
  const event = await makeEvent({ title: 'ערב <שחמט>' })
  const ada = await member()
  await ada.inject('POST', `/events/${event}/register`)
  const sender = await person(app, 'ADMIN')
  await sender.inject('POST', `/agenda/${event}/message`, { subject: 'שלום', text: 'שלום שלום שלום\nAda' })
  const emails = await deliver(t)
  const registered = emails.find(({ subject }) => subject!.startsWith('You are registered'))!
  t.match(registered.text, 'You are registered for “ערב <שחמט>” of Chess Club, on ')
  t.match(registered.html, '<p>You are registered for “<span dir="auto">ערב &lt;שחמט&gt;</span>” of <span dir="auto">')
  t.match(emails.find(({ subject }) => subject === 'שלום')!.html, '<p dir="auto">שלום שלום שלום<br>\nAda</p>')
})

t.test('What a version before 1.1 did not tell is told after the update', async t => {
  const event = await makeEvent({ date: new Date('2999-01-05T18:30:00.000Z') })
  await (await member()).inject('POST', `/events/${event}/register`)
  await deliver(t)
  await sql`
    UPDATE emails SET
      data = jsonb_set(data, '{announced}', (data -> 'announced') - '{endsAt,place,onlineUrl,seat}'::text[])
  `
  await admin.inject('PUT', `/agenda/${event}`, {
    place: 'Room 1', endsAt: '2999-01-05T20:30:00Z', onlineUrl: 'https://meet.example.org/',
  })
  t.match(await deliver(t), [{ text: /New end: .*New place: Room 1\..*New online link:/s }])
})

t.test('Nobody is told about a seat that they gave up, that they know of, or of an event that is over', async t => {
  const outcomes: Record<string, (event: string, bob: Person) => Promise<unknown>> = {
    'given up': (event, bob) => bob.inject('PUT', `/me/seats/${event}`, { coming: false }),
    'event deleted': event => remove(event),
    'event over': event => sql`UPDATE events SET date = now() - interval '1 day' WHERE id = ${event}`,
  }
  for (const [outcome, change] of Object.entries(outcomes)) {
    const event = await makeEvent()
    const [ada, bob] = [await member(), await member()]
    await admin.inject('PUT', `/agenda/${event}`, { capacity: 1 })
    for (const who of [ada, bob]) await who.inject('POST', `/events/${event}/register`)
    await deliver(t)
    await ada.inject('PUT', `/me/seats/${event}`, { coming: false })
    await change(event, bob)
    const emails = await deliver(t)
    t.strictSame(emails.filter(({ subject }) => subject?.startsWith('You have a seat')), [], outcome)
  }

  // The confirmation has told it before the batch is written.
  const event = await makeEvent()
  const [ada, bob] = [await member(), await member()]
  await admin.inject('PUT', `/agenda/${event}`, { capacity: 1 })
  for (const who of [ada, bob]) await who.inject('POST', `/events/${event}/register`)
  await ada.inject('PUT', `/me/seats/${event}`, { coming: false })
  await sql`UPDATE email_batches SET due_at = now() + interval '1 day'`
  await sql`UPDATE emails SET due_at = now() - interval '1 s' WHERE status = 'pending'`
  t.match((await deliverDue(t)).find(({ address }) => address === bob.email)!.text, /You have a seat\./)
  t.strictSame(await deliver(t), [])
})

/** Runs a test with emails that no sender has tried, which later emails replace, and with emails that stay. */
function whetherTried (
  name: string, run: (t: Test, trying: () => Promise<unknown>, isTried: boolean) => Promise<void>
) {
  for (const isTried of [false, true]) {
    const trying = () => sql`UPDATE emails SET attempts = ${isTried ? 1 : 0} WHERE status = 'pending'`
    t.test(`${name}${isTried ? ', after a failed attempt' : ''}`, t => run(t, trying, isTried))
  }
}

whetherTried('A person who gets a seat, leaves it and gets one again has one email', async (t, trying, isTried) => {
  const event = await makeEvent()
  const [ada, bob] = [await member(), await member()]
  const answer = (who: Person, coming: boolean) => who.inject('PUT', `/me/seats/${event}`, { coming })
  await admin.inject('PUT', `/agenda/${event}`, { capacity: 1 })
  for (const who of [ada, bob]) await who.inject('POST', `/events/${event}/register`)
  await deliver(t)
  await answer(ada, false)
  await writeAllEmails()
  await trying()
  await answer(bob, false)
  for (const who of [ada, bob]) await answer(who, true)
  await answer(ada, false)
  await writeAllEmails()
  t.equal((await sql`SELECT FROM emails WHERE template = 'seat'`).count, isTried ? 2 : 1)
  t.strictSame((await deliver(t)).map(headOf), [[bob.email, 'You have a seat: Chess Night']])
})

whetherTried('A person who is taken off the list and registers again has one confirmation', async (t, trying) => {
  const event = await makeEvent()
  const ada = await member()
  const register = () => ada.inject('POST', `/events/${event}/register`)
  await register()
  await trying()
  const [{ registrationId }] = (await admin.inject('GET', `/agenda/${event}/seats`)).json().seats
  await admin.inject('DELETE', `/agenda/${event}/seats/${registrationId}`)
  await register()
  t.strictSame((await deliver(t)).map(headOf), [[ada.email, 'You are registered: Chess Night']])
})

whetherTried('A person who says no and comes after all has one confirmation', async (t, trying) => {
  const [event, ada] = [await makeEvent(), await member()]
  await ada.inject('POST', `/events/${event}/register`)
  await trying()
  for (const coming of [false, true]) await ada.inject('PUT', `/me/seats/${event}`, { coming })
  t.strictSame((await deliver(t)).map(headOf), [[ada.email, 'You are registered: Chess Night']])
})

t.test('A confirmation that version 1.0.0 has written is sent', async t => {
  const [event, ada] = [await makeEvent(), await member()]
  await register(event, [ada])
  const data = { event }
  await insert(app, 'emails', { template: 'registration', bulk: false, user_id: ada.id, data, key: event })
  t.strictSame((await deliver(t)).map(headOf), [[ada.email, 'You are registered: Chess Night']])
})

t.test('A new description or picture, and the same title, send no email', async t => {
  const event = await makeEvent()
  await register(event, [await member()])
  const changes = { title: 'Chess Night', description: 'Eleven games at once', imageUrl: 'https://example.org/a.png' }
  t.equal(await change(event, changes), 200)
  t.equal(await waiting(), 0)
  t.match(await sql`SELECT sequence FROM events`, [{ sequence: 0 }])
})

t.test('Changes within two minutes are one email', async t => {
  const event = await makeEvent()
  await register(event, [await member()])
  await change(event, { title: 'Go Night' })
  const [waiting] = await sql`SELECT due_at - now() > '115 s' AND due_at - now() <= '120 s' AS waits FROM email_batches`
  t.equal(waiting!.waits, true)
  await change(event, { title: 'Chess Day' })
  await change(event, { title: 'Chess Evening' })
  const emails = await deliver(t)
  t.equal(emails.length, 1)
  t.match(emails[0], { subject: 'Changed: Chess Evening', text: '“Chess Night” has changed' })
  t.match(calendarOf(t, emails[0]!), /SEQUENCE:3\n/)
})

t.test('A change that was reverted is not sent', async t => {
  const event = await makeEvent()
  await register(event, [await member()])
  await change(event, { title: 'Go Night' })
  await change(event, { title: 'Chess Night' })
  t.strictSame(await deliver(t), [])
})

t.test('A reverted change is sent to users who registered in between', async t => {
  const event = await makeEvent()
  const [ada, grace] = [await member(), await member()]
  await register(event, [ada])
  await change(event, { title: 'Go Night' })
  await grace.inject('POST', `/events/${event}/register`)
  t.match(await deliverDue(t), [{ subject: 'You are registered: Go Night' }])
  await change(event, { title: 'Chess Night' })
  const emails = await deliver(t)
  t.strictSame(emails.map(headOf), [[grace.email, 'Changed: Chess Night']])
  t.match(emails[0]!.text, /^“Go Night” has changed/)
})

t.test('A change that an email contained is not in the next email', async t => {
  const event = await makeEvent()
  const ada = await member()
  await ada.inject('POST', `/events/${event}/register`)
  // Both emails are written after the change.
  await change(event, { title: 'Go Night' })
  t.match(await deliverDue(t), [{ subject: 'You are registered: Go Night' }])
  t.strictSame(await deliver(t), [])
  await change(event, { title: 'Chess Day' })
  t.match(await deliver(t), [{ subject: 'Changed: Chess Day', text: /^“Go Night” has changed/ }])
})

t.test('A change that a reminder contained is not sent', async t => {
  const event = await makeEvent({ date: inDays(0.9) })
  await register(event, [await member()], inDays(-2))
  await change(event, { title: 'Go Night' })
  const hours = { REMINDER_HOURS: '24' }
  t.match(await deliverDue(t, hours), [{ subject: 'Reminder: Go Night' }])
  t.strictSame(await deliver(t, hours), [])
})

t.test('A refused email has told nothing', async t => {
  const event = await makeEvent()
  await (await member()).inject('POST', `/events/${event}/register`)
  await deliver(t)
  await change(event, { title: 'Go Night' })
  await tryToTell({ title: 'Go Night' }, sql`status = 'failed', settled_at = now(),`)
  await change(event, { title: 'Chess Night' })
  t.strictSame(await deliver(t), [])
})

t.test('A change is sent again if its email may not have arrived', async t => {
  const event = await makeEvent()
  await (await member()).inject('POST', `/events/${event}/register`)
  await deliver(t)
  await change(event, { title: 'Go Night' })
  await tryToTell({ title: 'Go Night' })
  await sql`UPDATE events SET title = 'Chess Night'`
  t.match(await deliver(t), [{ subject: 'Changed: Chess Night', text: /^“Go Night” has changed/ }])
  t.strictSame(await deliver(t), [])
})

t.test('A person who comes back gets the confirmation if it was not sent while they did not come', async t => {
  const event = await makeEvent()
  const ada = await member()
  const come = (coming: boolean) => ada.inject('PUT', `/me/seats/${event}`, { coming })
  await ada.inject('POST', `/events/${event}/register`)
  await come(false)
  t.strictSame(await deliver(t), [])
  await come(true)
  t.strictSame((await deliver(t)).map(headOf), [[ada.email, 'You are registered: Chess Night']])
  await come(false)
  await come(true)
  t.strictSame(await deliver(t), [], 'and once')

  const grace = await member()
  await grace.inject('POST', `/events/${event}/register`)
  for (const coming of [false, true]) await grace.inject('PUT', `/me/seats/${event}`, { coming })
  t.strictSame((await deliver(t)).map(headOf), [[grace.email, 'You are registered: Chess Night']], 'two emails wait')
})

t.test('A change that overtakes a confirmation tells everything, and the confirmation is not sent', async t => {
  const [event, ada] = [await makeEvent(), await member()]
  const onlineUrl = 'https://meet.example.org/1'
  await admin.inject('PUT', `/agenda/${event}`, { place: 'Room 1', onlineUrl, closesAt: '2997-01-01T10:00:00Z' })
  await ada.inject('POST', `/events/${event}/register`)
  await sql`UPDATE emails SET attempts = 1`
  await admin.inject('PUT', `/agenda/${event}`, { title: 'Go Night', opensAt: '2996-01-01T10:00:00Z' })
  await skipWaiting()
  await writeAllEmails()
  await sql`UPDATE emails SET due_at = now() - interval '1 s' WHERE template = 'event-changed'`
  const [email, ...others] = await deliverDue(t)
  t.strictSame([headOf(email!), others], [[ada.email, 'Changed: Go Night'], []])
  t.match(email!.text, /New title: “Go Night”\.\n\nRegistration opens on [^]*Registration closes on /)
  t.equal(email!.text!.match(/Registration opens/g)!.length, 1, 'once')
  t.match(email!.text, /Place: Room 1\.\n\nJoin online:\nhttps:\/\/meet.example.org\/1/)
})

t.test('A person who gets a seat while an email about an earlier one is being written is told', async t => {
  const event = await makeEvent()
  const [ada, bob, cleo] = [await member(), await member(), await member()]
  await admin.inject('PUT', `/agenda/${event}`, { capacity: 1 })
  for (const who of [ada, bob, cleo]) await who.inject('POST', `/events/${event}/register`)
  await deliver(t)
  await admin.inject('PUT', `/agenda/${event}`, { capacity: 3 })
  const { answered, written } = await sql.begin(async sql => {
    await sql`
      INSERT INTO emails (template, bulk, user_id, data, key)
      SELECT
        'seat', true, user_id, jsonb_build_object('event', ${event}::text),
        concat(registrations.event_id, ' ', extract(epoch FROM since))
      FROM event_registrations AS registrations JOIN event_answers ON registration_id = registrations.id
      WHERE user_id = ${bob.id}
    `
    const written = writeEmails(app.sql)
    await untilBlocked(app.sql)
    const answer = (coming: boolean) => cleo.inject('PUT', `/me/seats/${event}`, { coming })
    const answered = answer(false).then(() => answer(true))
    await Promise.race([answered, untilBlocked(app.sql, 2)])
    return { answered, written }
  })
  await Promise.all([answered, written])
  t.strictSame((await deliver(t)).map(headOf).sort(),
    [bob, cleo].map(({ email }) => [email, 'You have a seat: Chess Night']).sort())
})

t.test('A registration that is running while the address is verified is confirmed', async t => {
  const [event, ada] = [await makeEvent(), await person(app)]
  const { verified } = await sql.begin(async sql => {
    await insertRegistration(sql as unknown as Sql, app.outbox, ada.id, event)
    const verified = app.sql.begin(async sql => {
      await sql`UPDATE users SET email_verified_at = now() WHERE id = ${ada.id}`
      await tellVerified(sql, app.outbox, ada.id, ada.id)
    })
    await Promise.race([verified, untilBlocked(app.sql)])
    return { verified }
  })
  await verified
  t.strictSame((await deliver(t)).map(headOf), [[ada.email, 'You are registered: Chess Night']])
})

t.test('A registration that begins while the address is being verified is confirmed', async t => {
  for (const isEarly of [true, false]) {
    const [event, ada] = [await makeEvent(), await person(app)]
    const { registered } = await sql.begin(async sql => {
      await sql`UPDATE users SET email_verified_at = now() WHERE id = ${ada.id}`
      if (!isEarly) await tellVerified(sql, app.outbox, ada.id, ada.id)
      const registered = ada.inject('POST', `/events/${event}/register`)
      await untilBlocked(app.sql)
      if (isEarly) await tellVerified(sql, app.outbox, ada.id, ada.id)
      return { registered }
    })
    await registered
    t.strictSame((await deliver(t)).map(headOf), [[ada.email, 'You are registered: Chess Night']], `${isEarly}`)
  }
})

/** The emails that were claimed, and whose sender was killed. Their lease has expired. */
async function killSender () {
  const { length } = await claimEmails(sql, { account: 0, bulk: 100 })
  await sql`
    UPDATE emails SET due_at = due_at - interval '301 s', claimed_at = claimed_at - interval '301 s'
    WHERE status = 'pending'
  `
  return length
}

t.test('An email that may have arrived before its sender was killed is corrected', async t => {
  const event = await makeEvent()
  const set = (details: object) => admin.inject('PUT', `/agenda/${event}`, details)
  await set({ place: 'Room 1', onlineUrl: 'https://meet.example.org/1' })
  const [ada, grace] = [await member(), await member()]
  for (const { inject } of [ada, grace]) await inject('POST', `/events/${event}/register`)
  await deliver(t)
  await grace.inject('PUT', `/me/seats/${event}`, { coming: false })

  await set({ place: 'Room 2', onlineUrl: 'https://meet.example.org/2' })
  await skipWaiting()
  await writeAllEmails()
  t.equal(await killSender(), 2)
  await set({ place: 'Room 1', onlineUrl: 'https://meet.example.org/1' })
  const emails = await deliverDue(t)
  t.strictSame(emails.map(headOf).sort(), [ada, grace].map(({ email }) => [email, 'Changed: Chess Night']).sort())
  const [text] = emails.filter(({ address }) => address === ada.email).map(({ text }) => text)
  t.match(text, /Date: .*\n\nPlace: Room 1\.\n\nJoin online:\nhttps:\/\/meet.example.org\/1\n\nOrganizer: Chess Club\./)
  t.strictSame(await deliver(t), [], 'and once')

  await set({ place: null, onlineUrl: null })
  await deliver(t)
  await set({ place: 'Room 3', onlineUrl: 'https://meet.example.org/3' })
  await skipWaiting()
  await writeAllEmails()
  await killSender()
  await set({ place: null, onlineUrl: null })
  const [last] = (await deliverDue(t)).filter(({ address }) => address === ada.email)
  t.match(last!.text, /The event has no place\.\n\nThe event is not online\./)
})

t.test('An email whose sender was killed is the same again if nothing has changed since', async t => {
  const event = await makeEvent()
  await register(event, [await member()])
  await change(event, { title: 'Go Night' })
  await skipWaiting()
  await writeAllEmails()
  await sql`UPDATE emails SET data = data || jsonb_build_object('unsureSince', iso8601(now() + interval '1 s'))`
  const [email] = await deliver(t)
  t.match(email!.text, /New title: “Go Night”\.\n\nDate: [^\n]*\n\nIf the event/)
})

t.test('A fact that may have arrived, and does not hold any more, is corrected with the other changes', async t => {
  const event = await makeEvent()
  const ada = await member()
  await ada.inject('POST', `/events/${event}/register`)
  await deliver(t)
  const set = (details: object) => admin.inject('PUT', `/agenda/${event}`, details)
  /** An attempt to tell this change has no response. Then comes another change. */
  const changeTwice = async (first: object, second: () => Promise<unknown>) => {
    await set(first)
    await tryToTell(first)
    await second()
    const [{ text }] = await deliver(t) as unknown as [{ text: string }]
    return text
  }
  const undone = await changeTwice({ place: 'Room 2', title: 'Go Night' }, () => set({ place: null }))
  t.match(undone, 'New title: “Go Night”.')
  t.match(undone, 'The event has no place.')
  t.match(undone, 'Organizer: Chess Club.')

  const changed = await changeTwice({ place: 'Room 3' }, async () => {
    await set({ place: 'Room 4' })
    await change(event, { clubId: go })
  })
  for (const line of ['New place: Room 4.', 'New organizer: Go Club (was Chess Club).']) t.match(changed, line)
  t.notMatch(changed, /^(?:Place|Organizer)/m)
})

t.test('A person who registers again has the confirmation, and no older email about a change', async t => {
  const event = await makeEvent()
  const ada = await member()
  await ada.inject('POST', `/events/${event}/register`)
  await deliver(t)
  await change(event, { title: 'Go Night' })
  await skipWaiting()
  await writeAllEmails()
  const [seat] = (await admin.inject('GET', `/agenda/${event}/seats`)).json().seats
  await admin.inject('DELETE', `/agenda/${event}/seats/${seat.registrationId}`)
  await ada.inject('POST', `/events/${event}/register`)
  t.strictSame((await deliver(t)).map(headOf), [[ada.email, 'You are registered: Go Night']])
})

t.test('A waiting email includes later changes, and a sent email is followed by a second one', async t => {
  const event = await makeEvent()
  const [ada, grace] = [await member(), await member()]
  await register(event, [ada, grace])
  await change(event, { title: 'Go Night' })
  await skipWaiting()
  await writeAllEmails()
  t.equal((await listEmails(sql)).length, 2)
  await sql`
    UPDATE emails SET status = 'sent', claimed_at = now() - interval '1 minute', settled_at = now()
    WHERE user_id = ${ada.id}
  `
  await change(event, { title: 'Chess Evening' })
  const emails = await deliver(t)
  t.strictSame(emails.map(({ address, text }) => [address, text!.split(' has')[0]]).sort(),
    [[ada.email, '“Go Night”'], [grace.email, '“Chess Night”']].sort())
})

t.test('Changes of events that are over are not sent', async t => {
  const event = await makeEvent({ date: inDays(-1) })
  const ada = await member()
  await register(event, [ada])
  await change(event, { title: 'Go Night' })
  t.equal(await waiting(), 0)
  await remove(event)
  t.equal(await waiting(), 0)

  const late = await makeEvent()
  await register(late, [ada])
  await change(late, { title: 'Go Night' })
  await sql`
    UPDATE email_batches SET data = jsonb_set(data, '{known,date}', to_jsonb(iso8601(now() - interval '1 day')))
  `
  await sql`UPDATE events SET date = now() - interval '1 day'`
  t.strictSame(await deliver(t), [], 'nor events that ended before sending')
})

t.test('People at an event that is running are told of changes and of its deletion', async t => {
  const HOUR = 3_600_000
  const ada = await member()
  const set = (event: string, details: object) => admin.inject('PUT', `/agenda/${event}`, details)
  const running = async (hours?: number) => {
    const event = await makeEvent({ date: new Date(Date.now() - HOUR) })
    if (hours) await set(event, { endsAt: new Date(Date.now() + hours * HOUR).toISOString() })
    await register(event, [ada])
    return event
  }
  const changes: Record<string, (event: string) => Promise<unknown>> = {
    'New place': event => set(event, { place: 'Room 2' }),
    'New end': event => set(event, { endsAt: new Date(Date.now() - HOUR / 2).toISOString() }),
    'New title': event => change(event, { title: 'Go Night' }),
    'has been cancelled': remove,
  }
  for (const [words, apply] of Object.entries(changes)) {
    for (const hours of [undefined, 5]) {
      await apply(await running(hours))
      const emails = await deliver(t)
      t.strictSame([emails.length, emails[0]?.address], [1, ada.email], `${words} ${hours}`)
      t.match(emails[0]!.text, words)
    }
    const over = await running()
    await sql`UPDATE events SET date = now() - interval '5 hours' WHERE id = ${over}`
    await apply(over)
    t.strictSame(await deliver(t), [], `${words}, when it is over`)
  }
  const prolonged = await makeEvent({ date: new Date(Date.now() - 5 * HOUR) })
  await register(prolonged, [ada], new Date(Date.now() - 6 * HOUR))
  await set(prolonged, { endsAt: new Date(Date.now() + HOUR).toISOString() })
  t.match(await deliver(t), [{ text: 'New end' }], 'an event that comes again')

  for (const isLate of [false, true]) {
    const event = await running(1)
    const [{ registrationId }] = (await admin.inject('GET', `/agenda/${event}/seats`)).json().seats
    await admin.inject('DELETE', `/agenda/${event}/seats/${registrationId}`)
    if (isLate) await sql`UPDATE emails SET data = jsonb_set(data, '{event,endsAt}', to_jsonb(iso8601(now())))`
    t.equal((await deliver(t)).length, isLate ? 0 : 1, 'taken off the list')
  }
})

t.test('A move to the past is sent', async t => {
  const event = await makeEvent()
  await register(event, [await member()])
  await change(event, { data: '2020-01-31T18:30:00Z' })
  t.equal((await deliver(t)).length, 1)
})

t.test('A cancellation goes to all who were registered', async t => {
  const event = await makeEvent({ date: new Date('2999-01-31T18:30:00Z') })
  const people = [await member(), await member()]
  await register(event, people)
  t.equal(await remove(event), 200)
  const emails = await deliver(t)
  t.strictSame(emails.map(headOf), people.map(({ email }) => [email, 'Cancelled: Chess Night']).sort())
  t.match(emails[0]!.text,
    /^“Chess Night” of Chess Club, on \w+,? 31 January 2999 at 18:30 UTC, has been cancelled\.$/m)
  t.match(calendarOf(t, emails[0]!),
    new RegExp(`METHOD:CANCEL\n.*UID:${event}\nSEQUENCE:1\nSTATUS:CANCELLED\n`, 's'))

  const late = await makeEvent()
  await register(late, people)
  await remove(late)
  await sql`
    UPDATE email_batches SET data = jsonb_set(data, '{event,date}', to_jsonb(iso8601(now() - interval '1 day')))
  `
  t.strictSame(await deliver(t), [], 'unless it would be over')
})

t.test('Users of a deleted event get the cancellation, and messages that were accepted', async t => {
  const event = await makeEvent({ date: inDays(0.5) })
  const ada = await member()
  await ada.inject('POST', `/events/${event}/register`)
  await sql`UPDATE event_registrations SET registered_at = now() - interval '2 days'`
  await change(event, { title: 'Go Night' })
  await admin.inject('POST', `/agenda/${event}/message`, { subject: 'Boards', text: 'Bring a board, please.' })
  await writeReminders(sql, 24)
  await skipWaiting()
  await writeAllEmails()
  t.equal((await listEmails(sql)).length, 4)
  await remove(event)
  t.strictSame((await deliver(t)).map(headOf), [[ada.email, 'Boards'], [ada.email, 'Cancelled: Chess Night']],
    'by the title that they know')
})

t.test('In a calendar, the emails create an event, move it and remove it', async t => {
  const event = await makeEvent({ date: new Date('2999-01-31T18:30:00Z') })
  const ada = await member()
  const calendars: string[] = []
  const receive = async (expected: object[]) => {
    const [email] = await deliver(t)
    calendars.push(calendarOf(t, email!))
    t.strictSame(eventsOf(calendars), expected)
    const { body } = await app.inject('/feeds/events.ics')
    const lines = (text: string) => /UID:.+\nSEQUENCE:.+\n/.exec(text.replaceAll('\r\n', '\n'))?.[0]
    if (expected.length > 0) t.equal(lines(body), lines(calendars.at(-1)!), 'as in the feed')
  }
  await ada.inject('POST', `/events/${event}/register`)
  await receive([{ sequence: 0, start: '2999-01-31T18:30:00.000Z', summary: 'Chess Night' }])
  await change(event, { data: '2999-02-01T18:30:00Z' })
  await receive([{ sequence: 1, start: '2999-02-01T18:30:00.000Z', summary: 'Chess Night' }])
  await remove(event)
  await receive([])
})

t.test('All who registered in time are reminded once', async t => {
  const early = inDays(-2)
  const [ada, grace, eve] = [await member(), await member(), await person(app)]
  const soon = await makeEvent({ date: inDays(0.9) })
  const [far, over] = [await makeEvent(), await makeEvent({ date: early })]
  for (const event of [soon, far, over]) await register(event, [ada, eve], early)
  await register(soon, [grace])
  const hours = { REMINDER_HOURS: '24' }
  t.strictSame((await deliver(t, hours)).map(headOf), [[ada.email, 'Reminder: Chess Night']])
  t.strictSame(await deliver(t, hours), [])

  // Also when it moves away and back.
  const [{ date }] = await sql<[{ date: Date }]>`SELECT date FROM events WHERE id = ${soon}`
  await sql`UPDATE events SET date = ${inDays(20)} WHERE id = ${soon}`
  await sql`UPDATE events SET date = ${date} WHERE id = ${soon}`
  t.strictSame(await deliver(t, hours), [])
  await sql`UPDATE events SET date = ${inDays(0.5)} WHERE id = ${soon}`
  const [email] = await deliver(t, hours)
  t.match(email, { address: ada.email, subject: 'Reminder: Chess Night' }, 'of another date, once more')
})

t.test('Without REMINDER_HOURS there are no reminders', async t => {
  await register(await makeEvent({ date: inDays(0.9) }), [await member()], inDays(-2))
  t.match(await findWork(sql, 0), { reminder: false })
  t.match(await findWork(sql, 24), { reminder: true })
})

t.test('A reminder of a moved event is not sent', async t => {
  const event = await makeEvent({ date: inDays(0.9) })
  await register(event, [await member()], inDays(-2))
  await writeReminders(sql, 24)
  await sql`UPDATE events SET date = ${inDays(10)} WHERE id = ${event}`
  t.strictSame(await deliver(t), [])
})

t.test('A late reminder is not sent after the event has begun', async t => {
  const event = await makeEvent({ date: inDays(0.9) })
  await register(event, [await member()], inDays(-2))
  await writeReminders(sql, 24)
  await sql`UPDATE events SET date = now() - interval '1 minute' WHERE id = ${event}`
  await sql`UPDATE email_batches SET data = data || (SELECT jsonb_build_object('date', iso8601(date)) FROM events)`
  t.strictSame(await deliver(t), [])
})

t.test('An event that moves away and back reminds only users who were not reminded before', async t => {
  const date = inDays(0.9)
  const event = await makeEvent({ date })
  const [ada, grace, eve] = [await member(), await member(), await member()]
  await register(event, [ada, grace, eve], inDays(-2))
  await writeReminders(sql, 24)
  await writeAllEmails()
  await sql`UPDATE emails SET status = 'sent', settled_at = now() WHERE user_id = ${ada.id}`
  await eve.inject('PUT', '/me/notifications', { notifications: { eventReminder: false } })
  for (const away of [inDays(10), inDays(20)]) {
    await sql`UPDATE events SET date = ${away} WHERE id = ${event}`
    t.strictSame(await deliver(t), [])
    await sql`UPDATE events SET date = ${date} WHERE id = ${event}`
    await writeReminders(sql, 24)
    await writeAllEmails()
  }
  t.strictSame((await deliver(t, { REMINDER_HOURS: '24' })).map(headOf), [[grace.email, 'Reminder: Chess Night']])
  t.strictSame(await deliver(t, { REMINDER_HOURS: '24' }), [])
})

t.test('A reminder that is turned off does not repeat the reminders of other users', async t => {
  const [ada, grace] = [await member(), await member()]
  await register(await makeEvent({ date: inDays(0.9) }), [ada, grace], inDays(-2))
  await writeReminders(sql, 24)
  await writeAllEmails()
  await grace.inject('PUT', '/me/notifications', { notifications: { eventReminder: false } })
  t.strictSame((await deliver(t, { REMINDER_HOURS: '24' })).map(headOf), [[ada.email, 'Reminder: Chess Night']])
  t.strictSame(await deliver(t, { REMINDER_HOURS: '24' }), [])
  t.match(await findWork(sql, 24), { batch: false, reminder: false })
})

t.test('Several senders write each reminder once', async t => {
  const people = [await member(), await member()]
  await register(await makeEvent({ date: inDays(0.9) }), people, inDays(-2))
  await Promise.all([1, 2, 3].map(() => writeReminders(sql, 24)))
  // The sender of the service may also be writing this batch.
  while (await waiting() > 0) await Promise.all([1, 2, 3].map(() => writeEmails(sql)))
  t.equal((await listEmails(sql)).length, 2)
})

t.test('Authors get the decision about their post', async t => {
  const ada = await member()
  const [{ id }] = await sql<[{ id: string }]>`
    INSERT INTO blogs (title, content, author_id) VALUES ('Ten games', 'At once', ${ada.id}) RETURNING id
  `
  await admin.inject('POST', `/blogs/${id}/approve`)
  await admin.inject('POST', `/blogs/${id}/approve`)
  const [published, ...others] = await deliver(t)
  t.match(published, { address: ada.email, subject: 'Your blog post has been published: Ten games' })
  t.match(published!.text, `Read it:\nhttps://app.example.org/blogs/${id}\n`)
  t.strictSame(others, [])

  await admin.inject('PUT', `/blogs/${id}`, { title: 'Eleven games' })
  await admin.inject('PUT', `/blogs/${id}`, { status: 'ARCHIVED' })
  t.match(await deliver(t), [{ subject: 'Your blog post has been archived: Eleven games' }])

  await admin.inject('POST', `/blogs/${id}/approve`)
  await admin.inject('PUT', `/blogs/${id}`, { status: 'DRAFT' })
  t.strictSame(await deliver(t), [], 'not of one that was taken back')

  for (const decision of ['approve', 'archive', 'approve']) await admin.inject('POST', `/blogs/${id}/${decision}`)
  // Ids of the same millisecond have any order.
  await sql`
    UPDATE emails SET id = 'ffffffff-ffff-7fff-bfff-ffffffffffff'
    WHERE status = 'pending' AND data ->> 'status' = 'ARCHIVED'
  `
  t.match(await deliver(t), [{ subject: 'Your blog post has been published: Eleven games' }], 'once')
  await admin.inject('PUT', `/blogs/${id}`, { status: 'DRAFT' })

  await admin.inject('POST', `/blogs/${id}/approve`)
  const [bare] = await deliver(t, { FRONTEND_URL: '' })
  t.notMatch(bare!.text, 'Read it')
})

t.test('A message goes to all who are registered, and responses to its sender', async t => {
  const head = await person(app, 'CLUB_HEAD', { club_id: chess, first_name: 'Grace', email_verified_at: new Date() })
  const event = await makeEvent()
  const people = [await member(), await member()]
  await register(event, people)
  const [unverifiedGuest, silent] = [await person(app), await member()]
  await silent.inject('PUT', '/me/notifications', { notifications: { eventMessage: false } })
  await register(event, [unverifiedGuest, silent])
  const text = 'Dear all,\r\n\r\n\r\nwe have <few> boards:\ntwo.\n'
  const message = { subject: 'Bring a board\r\nBcc: eve@example.org', text }
  const { statusCode, body } = await head.inject('POST', `/agenda/${event}/message`, message)
  t.equal(statusCode, 202)
  t.strictSame(JSON.parse(body), { message: 'The message is on its way', reach: { reached: 2, notReached: 2 } })
  const { seats, cancellation } = (await head.inject('GET', `/agenda/${event}/seats`)).json()
  t.strictSame(new Map(seats.map(({ userId, isReached }: any) => [userId, isReached])), new Map([
    ...people.map(({ id }) => [id, true] as const), [unverifiedGuest.id, false], [silent.id, false],
  ]))
  t.strictSame(cancellation, { reached: 3, notReached: 1 }, 'other emails have a switch of their own')
  const emails = await deliver(t)
  t.strictSame(emails.map(headOf), people.map(({ email }) => [email, 'Bring a board Bcc: eve@example.org']).sort())
  t.match(emails[0], {
    replyTo: [{ name: 'Grace Lovelace', address: head.email }],
    text: 'Grace Lovelace sent this message to everyone who comes to “Chess Night”:\n\nDear all,\n\n' +
      `we have <few> boards:\ntwo.\n\nOpen the page of the event:\nhttps://app.example.org/events/${event}\n`,
    html: '<p dir="auto">Dear all,</p>\n<p dir="auto">we have &lt;few&gt; boards:<br>\ntwo.</p>',
  })

  await sql`UPDATE users SET email_verified_at = NULL WHERE id = ${head.id}`
  await head.inject('POST', `/agenda/${event}/message`, message)
  const [unverified] = await deliver(t)
  t.equal(unverified!.replyTo, undefined, 'if their email is verified')
})

t.test('Emails with a decision or a message contain the beginning of a long title', async t => {
  const ada = await member()
  const title = 'x'.repeat(250_000)
  const post = await insert(app, 'blogs', { title, content: 'At once', author_id: ada.id })
  const event = await makeEvent({ title })
  await register(event, [ada])
  await admin.inject('POST', `/blogs/${post}/approve`)
  const message = { subject: 'Bring a board', text: 'We have few boards.' }
  t.equal((await admin.inject('POST', `/agenda/${event}/message`, message)).statusCode, 202)
  const emails = await deliver(t)
  t.equal(emails.length, 2)
  for (const { text } of emails) t.match(text, `“${'x'.repeat(4000)}…”`)
})

t.test('An erased member gets no email', async t => {
  const [ada, grace] = [await member(), await member()]
  const event = await makeEvent()
  await register(event, [ada, grace])
  await change(event, { title: 'Go Night' })
  await skipWaiting()
  await writeEmails(sql)
  await eraseUser(sql, ada.email, {})
  t.strictSame((await deliver(t)).map(headOf), [[grace.email, 'Changed: Go Night']])
})

t.test('An email of a message that is gone is not sent', async t => {
  const [event, ada] = [await makeEvent(), await member()]
  await register(event, [ada])
  await admin.inject('POST', `/agenda/${event}/message`, { subject: 'Boards', text: 'Bring a board, please.' })
  await sql`DELETE FROM event_messages`
  t.strictSame(await deliver(t), [])
})

t.test('An accepted message outlives its sender and its event', async t => {
  const admin = await person(app, 'ADMIN')
  const TEXT = /^An organizer sent this message to everyone who comes to “Chess Night”:/
  const losses: Record<string, (head: Person, event: string) => Promise<unknown>> = {
    erasure: head => eraseUser(sql, head.email, {}),
    'deletion by an admin': ({ id }) => admin.inject('DELETE', `/users/${id}`),
    'deletion of the event': (_head, event) => admin.inject('DELETE', `/events/${event}`),
  }
  for (const [loss, lose] of Object.entries(losses)) {
    for (const isWritten of [false, true]) {
      const head = await person(app, 'CLUB_HEAD', {
        club_id: chess, first_name: 'Grace', email_verified_at: new Date(),
      })
      const [event, ada] = [await makeEvent(), await member()]
      await register(event, [ada])
      await head.inject('POST', `/agenda/${event}/message`, { subject: 'Boards', text: 'Bring a board, please.' })
      if (isWritten) await writeEmails(sql)
      await lose(head, event)
      const emails = await deliver(t)
      const message = emails.find(({ subject }) => subject === 'Boards')
      t.match(message, { text: loss.endsWith('event') ? /^Grace Lovelace sent/ : TEXT }, `${loss} ${isWritten}`)
      t.match(message, { text: /to “Chess Night”:\n\nBring a board, please/ })
      if (loss.endsWith('event')) {
        t.match((await head.inject('GET', '/me/export')).json().messages, [{ subject: 'Boards', event: null }])
        await eraseUser(sql, head.email, {})
        t.equal((await sql`SELECT FROM event_messages WHERE sender_id IS NULL AND event_id IS NULL`).length, 0,
          'a message that was sent is erased')
      } else t.equal(message!.replyTo, undefined)
    }
  }
})

/** These members, and a batch to all of them. */
async function makeBatch (people: number) {
  await sql`DELETE FROM users WHERE email LIKE '%@many.example.org'`
  await sql`
    INSERT INTO users (email, password, first_name, last_name, email_verified_at)
    SELECT n || '@many.example.org', '!', 'Ada', 'Lovelace', now() FROM generate_series(1, ${people}::integer) AS n
  `
  const times = { delaySeconds: 120, pauseSeconds: 900 }
  return {
    enqueue: () => enqueueBatch(sql, 'event-changed', sql`
      SELECT
        'a key' AS key, '{"event": "a key"}'::jsonb AS data, NULL::uuid AS event_id,
        ARRAY(SELECT id FROM users WHERE email LIKE '%@many.example.org' ORDER BY id) AS user_ids
    `, null, times),
    /** Writes the next emails, without the wait unless `isWaiting`. Returns how many there are in all. */
    async write ({ isWaiting = false } = {}) {
      // The emails before are being sent.
      await sql`UPDATE emails SET due_at = now() + interval '1 hour' WHERE status = 'pending'`
      // Times have milliseconds: now() may be rounded up.
      await sql`
        UPDATE email_batches SET due_at = now() - interval '1 s'
        WHERE due_at <> 'infinity' AND (${!isWaiting} OR due_at <= now() + interval '1 s')
      `
      await writeEmails(sql)
      return (await sql`SELECT FROM emails`).length
    },
    /** Seconds until the batch is due, in steps of ten: some seconds may have passed since. */
    async wait () {
      const [row] = await sql`
        SELECT extract(epoch FROM due_at - now()) AS wait FROM email_batches WHERE key IS NOT NULL
      `
      return 10 * Math.ceil((row!.wait - 0.1) / 10)
    },
  }
}

t.test('A batch is one row, written in parts, and one without users not at all', async t => {
  const none = await makeBatch(0)
  await none.enqueue()
  t.equal((await sql`SELECT FROM email_batches`).length, 0)
  const { enqueue, write } = await makeBatch(1500)
  await enqueue()
  t.strictSame([await write(), await write(), await waiting(), await write(), await waiting()],
    [600, 1200, 1, 1500, 0])
  t.equal((await sql`SELECT DISTINCT user_id FROM emails`).length, 1500)
  t.equal(await write(), 1500, 'nothing is due any more')
  await sql`UPDATE email_batches SET told_at = now() - interval '2 days'`
  await enqueue()
  await write()
  t.equal((await sql`SELECT FROM email_batches WHERE told_at < now() - interval '1 day'`).length, 0)
})

t.test('A change between two parts of a batch is sent to users who have their email', async t => {
  const { enqueue, write, wait } = await makeBatch(700)
  await enqueue()
  t.equal(await write(), 600)
  const [sent] = await sql`
    UPDATE emails SET status = 'sent', claimed_at = now(), attempts = 1, settled_at = now()
    WHERE id = (SELECT id FROM emails LIMIT 1) RETURNING user_id
  `
  await enqueue()
  t.equal(await wait(), 900)
  t.equal(await write({ isWaiting: true }), 700, 'the second part does not wait')
  await write()
  t.equal(await write(), 701, 'others are told it in the email that waits')
  t.equal((await sql`SELECT FROM emails WHERE user_id = ${sent!.user_id}`).length, 2)
})

t.test('Eight changes within half an hour are two emails to all', async t => {
  const { enqueue, write, wait } = await makeBatch(1)
  const waits: number[] = []
  for (let n = 0; n < 8; n++) {
    await enqueue()
    waits.push(await wait())
    if (n === 0) await write()
    // Four minutes pass.
    await sql`UPDATE email_batches SET due_at = due_at - interval '4 min', told_at = told_at - interval '4 min'`
  }
  t.strictSame(waits, [120, 660, 420, 180, -60, -300, -540, -780])
})

t.test('A change does not wait for a sender that waits for an erasure', async t => {
  const ada = await member()
  const enqueue = (sql: Sql) => enqueueBatch(sql, 'event-message', sql`
    SELECT 'a key' AS key, '{}'::jsonb AS data, NULL::uuid AS event_id, ARRAY[${ada.id}::uuid] AS user_ids
  `, null, { delaySeconds: -1 })
  await enqueue(sql)
  const { written } = await sql.begin(async erasure => {
    await erasure`SELECT FROM users WHERE id = ${ada.id} FOR UPDATE`
    const written = writeEmails(sql)
    await untilBlocked(sql)
    await sql.begin(async change => {
      await change`SET LOCAL lock_timeout = 1000`
      await enqueue(change as unknown as Sql)
    })
    return { written }
  })
  await written
  t.equal((await sql`SELECT FROM emails`).length, 0, 'the batch that it had seen is another now')
  await writeEmails(sql)
  t.equal((await sql`SELECT FROM emails`).length, 1)
  await writeEmails(sql)
  t.equal((await sql`SELECT FROM emails`).length, 1, 'nothing is due any more')
})

t.test('Times in emails follow the summer time of MAIL_TIME_ZONE', async t => {
  const times = (zone: string, ...dates: string[]) =>
    dates.map(date => formatTime(new Date(date), testConfig({ MAIL_TIME_ZONE: zone })).replace(',', ''))
  t.strictSame(times('Europe/Berlin', '2026-10-25T00:30:00Z', '2026-10-25T01:30:00Z'), [
    'Sunday 25 October 2026 at 02:30 CEST', 'Sunday 25 October 2026 at 02:30 CET',
  ])
  t.strictSame(times('America/New_York', '2026-03-08T06:59:00Z', '2026-03-08T07:00:00Z'), [
    'Sunday 8 March 2026 at 01:59 GMT-5', 'Sunday 8 March 2026 at 03:00 GMT-4',
  ])
})

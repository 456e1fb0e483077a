import { randomUUID } from 'node:crypto'
import { readdir, readFile, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import nodemailer from 'nodemailer'
import postgres from 'postgres'

import { eraseUser } from '#lib/accounts/erasure.js'
import { BULK, templates } from '#lib/email/templates.js'
import { buildEmail } from '#lib/email/content.js'
import { claimEmails, enqueueEmails, listEmails, recordOutcomes, retryEmails } from '#lib/email/emails.js'
import { backoffSeconds, Sender, type Transport } from '#lib/email/sender.js'
import { SmtpTransport } from '#lib/email/smtp.js'
import { createTransport } from '#lib/email/transport.js'
import { build, insert, person, testConfig, untilBlocked } from '../../helper.ts'
import { percentile } from '../../statistics.ts'
import { type MailServer, messageIdOf, startMailServer } from '../../smtp.ts'
import t, { type Test } from '../../suite.ts'

// Kinds of the tests.
const known = templates as Record<string, unknown>
known.news = async ({ data }: { data: { title?: string, fails?: boolean } }) => {
  if (data.fails) throw new Error('no words')
  return data.title === undefined ? undefined : { subject: data.title, paragraphs: ['It is news.'] }
}
BULK.add('news')

const app = await build(t)
const { sql } = app
t.beforeEach(async () => { await sql`DELETE FROM emails` })

const TIMES = { tick: 20, pause: { first: 20, longest: 40 }, stop: 100 }

/** Starts a sender, which stops with the test. */
function startSender (t: Test, server: { url: string }, options: {
  variables?: NodeJS.Dict<string>
  sql?: typeof sql
  transport?: Transport
  tick?: number
  stop?: number
} = {}) {
  const lines: [details: any, message: string][] = []
  const log = (...line: any[]) => { lines.push(line.length > 1 ? line as [any, string] : [{}, line[0]]) }
  const config = testConfig({ SMTP_URL: server.url, MAIL_FROM: 'community@example.org', ...options.variables })
  const sender = new Sender({
    sql: options.sql ?? sql,
    config,
    log: { info: log, warn: log, error: log },
    transport: options.transport ?? new SmtpTransport(config, { connect: 5000, send: 5000, idle: 5000 }),
  }, { ...TIMES, tick: options.tick ?? TIMES.tick, stop: options.stop ?? TIMES.stop })
  sender.start()
  t.teardown(() => sender.stop())
  return { sender, lines, messages: () => lines.map(([, message]) => message) }
}

/** Enqueues an email to a user, at least a millisecond later than the previous email. */
async function enqueue (userId: string, template = 'test', data = {}, key: string | null = null) {
  await sleep(2)
  return enqueueEmails(sql, template as 'test', sql`
    SELECT ${userId}::uuid AS user_id, ${sql.json(data)}::jsonb AS data, ${key}::text AS key
  `, null)
}

async function until (holds: () => unknown) {
  const deadline = performance.now() + 120_000
  while (!await holds()) {
    if (performance.now() > deadline) throw new Error(`It does not hold: ${JSON.stringify(await listEmails(sql))}`)
    await sleep(10)
  }
}

/** The states of all emails, in the order in which they were written. */
const states = async () => (await sql`SELECT status FROM emails ORDER BY created_at, id`).map(({ status }) => status)

/** Whether no sender has claimed the email, or its outcome is recorded. */
const isReleased = sql`due_at IS DISTINCT FROM claimed_at + interval '300 s'`

const all = (...wanted: string[]) => until(async () => String(await states()) === String(wanted))

t.test('An email is sent once, with a Message-ID of its own', async t => {
  const server = await startMailServer(t)
  const { sender, lines } = startSender(t, server)
  const ada = await person(app, 'STUDENT', { first_name: 'Ada', last_name: 'Löve', email_verified_at: new Date() })
  const [email] = await enqueue(ada.id)
  await all('sent')
  t.equal(server.emails.length, 1)
  t.strictSame(server.emails[0]!.to, [ada.email])
  const parsed = await server.parse(0)
  t.match(parsed.messageId, new RegExp(`^<${email!.id}\\.1\\.[\\w-]{8}@example\\.org>$`))
  t.match(parsed, {
    from: { name: 'Community', address: 'community@example.org' },
    to: [{ name: 'Ada Löve', address: ada.email }],
    subject: 'Test email of Community',
    text: /^This email shows that .* can send you emails, .*\.\n\nAn operator requested it on \w+day/,
    html: /<p>This email shows that .* can send you emails, .*\.<\/p>\n<p>An operator/,
  })
  t.match(parsed.headers.find(({ key }) => key === 'auto-submitted'), { value: 'auto-generated' })
  t.equal(sender.sent, 1)
  t.notMatch(JSON.stringify(lines), ada.email, 'the log has no address')
  t.match(await listEmails(sql, 'sent'), [
    { status: 'sent', attempts: 1, error: null, template: 'test', userId: ada.id },
  ])
})

t.test('An idle sender only reads', async t => {
  const server = await startMailServer(t)
  const { sender } = startSender(t, server)
  const { id } = await person(app)
  await enqueue(id)
  await all('sent')
  await sender.stop()
  const readOnly = postgres(app.config.DATABASE_URL!, { connection: { default_transaction_read_only: true } })
  t.teardown(() => readOnly.end())
  const { messages } = startSender(t, server, { sql: readOnly })
  await sleep(10 * TIMES.tick)
  t.strictSame(messages(), [])
  await enqueue(id)
  await until(() => messages().includes('Cannot read or write the outbox'))
})

t.test('Emails about an account overtake bulk emails, which keep to MAIL_RATE', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  for (let n = 0; n < 5; n++) await enqueue(id, 'news', { title: `News ${n}` })
  await enqueue(id)
  // Long enough for two emails: the second one would be released, and the next one claimed instead.
  startSender(t, server, { variables: { MAIL_RATE: '120' }, tick: 500 })
  await until(() => server.emails.length >= 2)
  await enqueue(id)
  await all(...Array(7).fill('sent'))
  const news = await sql`SELECT data ->> 'title' AS title, claimed_at FROM emails WHERE bulk ORDER BY claimed_at, id`
  t.strictSame(news.map(({ title }) => title), [0, 1, 2, 3, 4].map(n => `News ${n}`))
  // A tick that a busy machine has missed may be made up for.
  t.ok(news[4]!.claimed_at - news[0]!.claimed_at > 1400, 'half a second from one to the next')
  const waits = (await sql<{ count: number }[]>`
    SELECT count(news.id)::integer FROM emails AS account LEFT JOIN emails AS news
      ON news.bulk AND news.claimed_at > account.created_at AND news.claimed_at < account.claimed_at
    WHERE NOT account.bulk GROUP BY account.id ORDER BY account.id
  `).map(({ count }) => count)
  t.equal(waits[0], 0, 'none is claimed before an email about an account')
  t.ok(waits[1]! <= 2, 'except in a tick that has begun')
})

t.test('Bulk emails go out at MAIL_RATE, no slower and no faster', async t => {
  // Takes no time, which a busy machine would make longer than a tick.
  let sent = 0
  const transport: Transport = {
    async send () {
      sent++
      return { status: 'sent' }
    },
    async verify () {},
    close () {},
  }
  // Three a tick, one and a half, half of one
  for (const [rate, count] of [[1800, 60], [900, 30], [300, 10]] as const) {
    await sql`DELETE FROM emails`
    sent = 0
    const { id } = await person(app)
    await enqueueEmails(sql, 'news' as 'test', sql`
      SELECT ${id}::uuid AS user_id, '{"title": "News"}'::jsonb AS data, NULL AS key
      FROM generate_series(1, ${count}::integer)
    `, null)
    // When each tick has begun, with one look at what there is to send.
    const ticks: number[] = []
    const counted = new Proxy(sql, {
      apply (target, self, [parts, ...rest]) {
        if (/AS account,/.test(parts.join())) ticks.push(performance.now())
        return Reflect.apply(target, self, [parts, ...rest])
      },
    })
    const { sender } = startSender(t, { url: 'smtp://127.0.0.1:9' }, {
      variables: { MAIL_RATE: String(rate) }, tick: 100, sql: counted, transport,
    })
    await until(() => sent > 0)
    const [start, before] = [performance.now(), ticks.length]
    await until(() => sent === count)
    const [seconds, passed] = [(performance.now() - start) / 1000, ticks.length - before]
    await sender.stop()
    // A tick of a busy machine may take longer, but not most of them.
    const lengths = ticks.slice(1).map((tick, n) => tick - ticks[n]!)
    const usual = percentile(lengths, 50)
    const shown = `${rate} a minute: ${seconds.toFixed(1)} s in ${passed} ticks of ${usual.toFixed()} ms`
    t.ok(seconds > 1.6 && passed < 25 && usual < 150, shown)
  }
})

t.test('A user has one email of a template and a key', async t => {
  const [{ id }, other] = [await person(app), await person(app)]
  t.equal((await enqueue(id, 'news', {}, 'one')).length, 1)
  t.equal((await enqueue(id, 'news', {}, 'one')).length, 0)
  t.equal((await enqueue(id, 'test', {}, 'one')).length, 1)
  t.equal((await enqueue(id, 'news', {}, 'two')).length, 1)
  t.equal((await enqueue(other.id, 'news', {}, 'one')).length, 1)
  t.equal((await enqueue(id, 'news')).length + (await enqueue(id, 'news')).length, 2)
})

t.test('An email of an unknown template is left to other senders', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  await sql`
    INSERT INTO emails (template, bulk, user_id, data, created_at)
    VALUES ('other', false, ${id}, '{}', now() - interval '1 s')
  `
  await enqueue(id)
  startSender(t, server)
  await all('pending', 'sent')
})

t.test('An email that no longer applies is removed', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  await enqueue(id, 'news')
  startSender(t, server)
  await all()
  t.equal(server.emails.length, 0)
})

t.test('An email that cannot be composed is retried, and finally fails', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  await enqueue(id, 'news', { fails: true })
  const { sender, lines } = startSender(t, server)
  for (const attempts of [1, 2, 33]) {
    if (attempts === 33) await sql`UPDATE emails SET attempts = 32`

    await until(async () => (await sql`
      SELECT FROM emails WHERE attempts = ${attempts} AND status = 'pending' AND ${isReleased}
    `).count)
    const [row] = await sql`SELECT round(extract(epoch FROM due_at - now())) AS delay, error FROM emails`
    t.ok(Math.abs(row!.delay - backoffSeconds(attempts)) <= 5, `${row!.delay} s`)
    t.equal(row!.error, 'The email could not be composed')
    await sql`UPDATE emails SET due_at = now()`
  }
  await all('failed')
  t.match(lines.at(-1), [{ template: 'news', error: 'The email could not be composed' }, 'Email failed'])
  t.equal(sender.refused, 1)
  t.equal(await retryEmails(sql), 1)
  t.match(await listEmails(sql), [{ status: 'pending', attempts: 0 }])
})

t.test('Backoff goes from a minute to four hours', async t => {
  t.strictSame([1, 2, 3, 4, 5, 6, 7].map(backoffSeconds), [60, 240, 960, 3840, 14_400, 14_400, 14_400])
})

t.test('An unreachable server is tried at growing intervals, without writes', async t => {
  const server = await startMailServer(t)
  server.fault = () => ({ stage: 'connect' })
  const { id } = await person(app)
  for (let n = 0; n < 6; n++) await enqueue(id)
  const { sender, messages } = startSender(t, server)
  const warnings = () => messages().filter(message => message.startsWith('Sending emails is paused'))
  await until(() => warnings().length >= 4)
  t.equal(sender.isPaused, true)
  t.strictSame(warnings().slice(0, 4), [0.02, 0.04, 0.04, 0.04].map(seconds =>
    `Sending emails is paused for ${seconds} s. The SMTP server has closed the connection`))
  const rows = () => sql`SELECT xmin, status, attempts FROM emails ORDER BY attempts DESC, id`
  await until(async () => (await sql`SELECT FROM emails WHERE error IS NOT NULL`).count === 4)
  const before = await rows()
  t.strictSame(before.map(({ attempts }) => attempts), [1, 1, 1, 1, 0, 0], 'those that were begun have an attempt')
  const asked = warnings().length
  await until(() => warnings().length >= asked + 2)
  t.strictSame(await rows(), before)
  server.fault = () => undefined
  await until(async () => (await sql`SELECT FROM emails WHERE status = 'sent'`).count === 2)
  t.equal(server.emails.length, 2, 'the others are sent as soon as it is back')
  t.strictSame([sender.isPaused, sender.refused], [false, 0])
})

t.test('Emails whose response is lost are sent again, with the same Message-ID', async t => {
  const server = await startMailServer(t)
  server.fault = () => server.connections === 1 ? { stage: 'response' } : undefined
  const { id } = await person(app)
  const [email] = await enqueue(id)
  startSender(t, server)
  await until(async () => (await sql`SELECT FROM emails WHERE attempts = 1 AND due_at > now()`).count)
  await until(() => sql`UPDATE emails SET due_at = now() WHERE error IS NOT NULL`.then(({ count }) => count))
  await all('sent')
  const [first, second] = server.emails.map(({ raw }) => messageIdOf(raw))
  t.ok(first!.startsWith(`${email!.id}.1.`))
  t.equal(second, first)
  t.match(await listEmails(sql, 'sent'), [{ attempts: 2, error: null }])
})

t.test('A second copy with a different text has a Message-ID of its own, so that no mailbox drops it', async t => {
  const server = await startMailServer(t)
  server.fault = () => ({ stage: 'response' })
  const { id } = await person(app)
  await enqueue(id, 'news', { title: 'One' })
  startSender(t, server)
  for (const [n, title] of ['One', 'One', 'Two', 'Two', 'One'].entries()) {
    await sql`UPDATE emails SET due_at = now(), data = data || ${sql.json({ title })} WHERE attempts = ${n}`
    await until(async () => (await sql`SELECT FROM emails WHERE attempts > ${n} AND ${isReleased}`).count)
  }
  // A sender that is killed records nothing.
  await sql`
    UPDATE emails SET due_at = now(), data = (data - 'version') || '{"title": "Three"}', attempts = 1
  `
  await until(async () => (await sql`SELECT FROM emails WHERE attempts > 1 AND ${isReleased}`).count)
  const ids = server.emails.map(({ raw }) => messageIdOf(raw))
  const [one, two, three, four] = [0, 2, 4, 5].map(n => ids[n])
  t.strictSame(ids, [one, one, two, two, three, four])
  t.equal(new Set(ids).size, 4)
})

t.test('The emails of a sender that was killed are sent when their lease has expired', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  await enqueue(id)
  // Times have milliseconds: its time may be rounded up.
  await sleep(2)
  const [email] = await claimEmails(sql, { account: 1, bulk: 1 })
  t.equal((await claimEmails(sql, { account: 1, bulk: 1 })).length, 0)
  const { sender } = startSender(t, server)
  await sleep(5 * TIMES.tick)
  t.equal(server.emails.length, 0, 'before it expires')
  await sql`UPDATE emails SET due_at = now()`
  await all('sent')
  await sender.stop()

  // The other sender was not killed, and has also sent the email.
  await recordOutcomes(sql, [{ id: email!.id, status: 'pending', attempts: 1, delay: 60 }])
  t.strictSame(await states(), ['sent'], 'a failure does not undo a success')
})

t.test('Two senders at once do not claim two emails to one person about one event', async t => {
  const { id } = await person(app)
  const data = { event: randomUUID() }
  await enqueue(id, 'test', data)
  // Times have milliseconds: its time may be rounded up.
  await sleep(2)
  const claim = (claiming: typeof sql) => claiming.begin(sql => claimEmails(sql, { account: 1, bulk: 1 }))
  let second: ReturnType<typeof claim> | undefined
  await sql.begin(async first => {
    t.equal((await claimEmails(first, { account: 1, bulk: 1 })).length, 1)
    // Its transaction began before, and has committed since.
    await insert(app, 'emails', { template: 'test', bulk: false, user_id: id, data, due_at: new Date(0) })
    second = claim(sql)
    await Promise.race([second, untilBlocked(sql)])
  })
  t.equal((await second!).length, 0)
})

t.test('An outcome that may not have been recorded is recorded again', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  await enqueue(id)
  let isLost = false
  // Loses the response to the first commit with an outcome.
  const losing = new Proxy(sql, {
    get (target, name, receiver) {
      if (name !== 'begin') return Reflect.get(target, name, receiver)
      return async (work: any) => {
        const result = await target.begin(work)
        if (isLost || (await states())[0] !== 'sent') return result
        isLost = true
        throw new Error('lost')
      }
    },
  })
  const { messages } = startSender(t, server, { sql: losing })
  await until(() => isLost)
  const [row] = await sql`SELECT xmin FROM emails`
  await sleep(5 * TIMES.tick)
  t.ok(messages().includes('Cannot read or write the outbox'))
  t.strictSame((await sql`SELECT xmin, attempts FROM emails`)[0], { ...row, attempts: 1 })
  t.equal(server.emails.length, 1)
})

t.test('Outcomes that cannot be recorded at the end are in the log', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  const failing = new Proxy(sql, {
    get (target, name, receiver) {
      if (name === 'begin' && server.emails.length > 0) return () => Promise.reject(new Error('lost'))
      return Reflect.get(target, name, receiver)
    },
  })
  await enqueue(id)
  const { sender, messages } = startSender(t, server, { sql: failing })
  await until(() => server.emails.length === 1)
  await sender.stop()
  t.ok(messages().includes('Cannot record outcomes of emails: they will be sent again'))
})

t.test('The last outcomes are recorded again after a deadlock', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  let isStopping = false
  const failing = new Proxy(sql, {
    get (target, name, receiver) {
      if (name !== 'begin' || !isStopping) return Reflect.get(target, name, receiver)
      isStopping = false
      return () => Promise.reject(Object.assign(new Error('deadlock detected'), { code: '40P01' }))
    },
  })
  await enqueue(id)
  const { sender } = startSender(t, server, { sql: failing })
  await until(() => server.emails.length === 1)
  isStopping = true
  await sender.stop()
  t.strictSame(await states(), ['sent'])
})

t.test('Emails that are claimed and not begun are released', async t => {
  let finish: (() => void) | undefined
  const server = await startMailServer(t, {
    onData (stream, _session, done) { stream.resume().on('end', () => { finish = () => done(null) }) },
  })
  const { id } = await person(app)
  for (let n = 0; n < 6; n++) await enqueue(id)
  for (let n = 0; n < 4; n++) await enqueue(id, 'news', { title: 'News' })
  const { sender } = startSender(t, server, { variables: { MAIL_RATE: '6000' }, stop: 1000 })
  const begun = () => sql`SELECT template FROM emails WHERE attempts = 1 ORDER BY id`
  await until(() => finish)
  await until(async () => (await begun()).length === 4)
  const rows = () => sql`SELECT xmin FROM emails ORDER BY id`
  const before = await rows()
  await sleep(5 * TIMES.tick)
  t.strictSame(await rows(), before, 'and not claimed again while all connections are taken')
  const stopped = sender.stop()
  finish!()
  await stopped
  t.strictSame((await states()).sort(), [...Array(9).fill('pending'), 'sent'], 'a stop gives up others')
})

t.test('A stop does not wait for a mail server that does not answer', async t => {
  const server = await startMailServer(t)
  server.fault = () => ({ stage: 'response', silent: true })
  const { id } = await person(app)
  await enqueue(id)
  const { sender } = startSender(t, server)
  await until(async () => (await sql`SELECT FROM emails WHERE attempts = 1`).length === 1)
  await sleep(100)
  const begin = performance.now()
  await sender.stop()
  const time = performance.now() - begin
  t.ok(time < 2500, `${time} ms`)
})

t.test('Reminders of many events do not delay emails about an account', async t => {
  const club = await insert(app, 'clubs')
  await sql`
    INSERT INTO events (title, description, date, club_id)
    SELECT 'Event', 'Soon', now() + interval '1 hour', ${club} FROM generate_series(1, 100)
  `
  const ada = await person(app, 'STUDENT')
  await enqueue(ada.id)
  startSender(t, await startMailServer(t), { tick: 100 })
  await all('sent')
  const [{ count }] = await sql<[{ count: number }]>`SELECT count(*)::int FROM event_reminders`
  t.ok(count < 100, `${count} events were first`)
  await sql`DELETE FROM events`
})

t.test('Bulk emails leave a connection to emails about an account', async t => {
  const server = await startMailServer(t, {
    onData (stream, _session, done) {
      text(stream).then(raw => { if (raw.includes('Test email')) done(null) }, done)
    },
  })
  const { id } = await person(app)
  for (let n = 0; n < 5; n++) await enqueue(id, 'news', { title: 'News' })
  startSender(t, server, { variables: { MAIL_RATE: '6000' } })
  await until(() => server.connections === 3)
  await enqueue(id)
  await until(async () => (await states()).includes('sent'))
})

t.test('Networks take turns', async t => {
  const server = await startMailServer(t)
  const [eve, ada] = [await person(app), await person(app)]
  const write = ({ id }: { id: string }, network: string, count: number) => enqueueEmails(sql, 'test', sql`
    SELECT ${id}::uuid AS user_id, '{}'::jsonb AS data, NULL AS key FROM generate_series(1, ${count}::integer)
  `, network)
  await write(eve, '2001:db8:1::/48', 1500)
  const begin = performance.now()
  startSender(t, server, { tick: 1000 })
  await until(() => server.emails.length > 0)
  await write(ada, '192.0.2.1', 1)
  const before = server.emails.length
  const position = () => server.emails.findIndex(({ to }) => to[0] === ada.email)
  await until(() => position() >= 0)
  t.ok(position() - before <= 2 * 20, `behind ${position() - before} others: the rest of a tick, and the next one`)
  const [{ commits }] = await sql<[{ commits: number }]>`
    SELECT count(DISTINCT settled_at)::integer AS commits FROM emails
  `
  const passed = (performance.now() - begin) / 1000
  t.ok(commits > 0 && commits <= passed + 1, `${commits} commits in ${passed.toFixed(1)} s`)
})

t.test('An email whose account is erased while it waits in a batch is not sent', async t => {
  const finish: (() => void)[] = []
  const server = await startMailServer(t, {
    onData (stream, _session, done) { stream.resume().on('end', () => { finish.push(() => done(null)) }) },
  })
  const [ada, grace] = [await person(app), await person(app)]
  for (let n = 0; n < 4; n++) await enqueue(ada.id)
  await enqueue(grace.id)
  const { sender, messages } = startSender(t, server, { tick: 60_000 })
  await until(() => finish.length === 4)
  await eraseUser(sql, grace.email, {})
  for (const end of finish) end()
  await until(() => messages().length === 5)
  await sender.stop()
  t.strictSame(await states(), ['sent', 'sent', 'sent', 'sent'])
  t.strictSame(messages().sort(), ['Email obsolete', ...Array(4).fill('Email sent')])
  t.equal(finish.length, 4)
  t.equal(sender.sent, 4)
})

t.test('Later emails remove old ones', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  for (const key of ['one', 'two']) await enqueue(id, 'test', {}, key)
  startSender(t, server)
  await all('sent', 'sent')
  await sql`UPDATE emails SET settled_at = now() - interval '31 days' WHERE key = 'one'`
  await enqueue(id, 'test', {}, 'three')
  await all('sent', 'sent')
  t.strictSame((await sql`SELECT key FROM emails ORDER BY created_at`).map(({ key }) => key), ['two', 'three'])
})

t.test('Names and texts cannot forge headers, lines or markup', async t => {
  const server = await startMailServer(t)
  const evil = 'Ada\r\nBcc: eve@example.org\r\n\r\n<script>alert("1")</script>\u2028&'
  const ada = await person(app, 'STUDENT', { first_name: evil, last_name: evil, email_verified_at: new Date() })
  await enqueue(ada.id, 'news', { title: evil })
  startSender(t, server)
  await all('sent')
  const [{ to }] = server.emails as [MailServer['emails'][0]]
  t.strictSame(to, [ada.email])
  const parsed = await server.parse(0)
  t.equal(parsed.bcc, undefined)
  t.strictSame(parsed.headers.map(({ key }) => key).sort(), [
    'auto-submitted', 'content-type', 'date', 'from', 'message-id', 'mime-version', 'subject', 'to',
  ])
  const line = 'Ada Bcc: eve@example.org <script>alert("1")</script> &'
  t.equal(parsed.subject, line)
  t.strictSame(parsed.to, [{ name: `${line} ${line}`, address: ada.email }])
  const escaped = 'Ada Bcc: eve@example.org &lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp;'
  t.match(parsed.html, `<title>${escaped}</title>`)
})

t.test('An address of the provider is one recipient, whatever its form', async t => {
  for (const [email, to] of [
    ['ada@exämple.org', 'ada@xn--exmple-cua.org'],
    ['ada@example.org, eve@example.org', '"ada@example.org, eve"@example.org'],
  ] as const) {
    const recipient = { email, isVerified: true, firstName: 'Ada', lastName: 'Lovelace' }
    const message = buildEmail('one', recipient, { subject: 'One', paragraphs: [] }, app.config)
    const { envelope } = await nodemailer.createTransport({ streamTransport: true }).sendMail(message)
    t.strictSame(envelope, { from: 'community@example.org', to: [to] })
  }
})

t.test('A long name or subject is cut', async t => {
  const server = await startMailServer(t)
  const name = { first_name: '😀'.repeat(200), last_name: 'x'.repeat(1_000_000) }
  const ada = await person(app, 'STUDENT', { ...name, email_verified_at: new Date() })
  await enqueue(ada.id, 'news', { title: 'y'.repeat(10_000) })
  startSender(t, server)
  await all('sent')
  const { to, subject } = await server.parse(0)
  t.strictSame([to, subject], [[{ name: `${'😀'.repeat(200)}…`, address: ada.email }], `${'y'.repeat(200)}…`])
  const [header] = server.emails[0]!.raw.split('\r\n\r\n')
  t.ok(Math.max(...header!.split('\r\n').map(({ length }) => length)) <= 998)
})

t.test('Two senders with faults at every stage send each email at least once', async t => {
  const server = await startMailServer(t)
  const faults = ['greeting', 'MAIL FROM', 'RCPT TO', 'DATA', 'final dot', 'response', undefined, undefined] as const
  server.fault = () => {
    const stage = faults[(server.connections - 1) % faults.length]
    return stage && { stage }
  }
  const { id } = await person(app)
  const emails = 60
  await sql`
    INSERT INTO emails (template, bulk, user_id, data)
    SELECT 'test', false, ${id}, '{}' FROM generate_series(1, ${emails}::int)
  `
  for (let n = 0; n < 2; n++) startSender(t, server)
  await until(async () => {
    // All but the leases
    await sql`
      UPDATE emails SET due_at = now() WHERE status = 'pending' AND due_at > now() AND ${isReleased}
    `
    return !(await states()).includes('pending')
  })
  const counts = server.counts()
  const ids = (await sql`SELECT id FROM emails WHERE status = 'sent'`).map(({ id }) => id)
  t.strictSame([...counts.keys()].sort(), ids.sort(), 'each arrives')
  const twice = [...counts.values()].reduce((sum, count) => sum + count - 1, 0)
  t.equal(twice, server.breaks.filter(stage => stage === 'response').length, 'twice if its response was lost')
})

t.test('In development emails are files', async t => {
  const DATA_DIR = t.testdir()
  const service = await build(t, { NODE_ENV: 'development', DATA_DIR })
  const ada = await person(service)
  const enqueued = await service.outbox.enqueue('test', service.sql`
    SELECT id AS user_id, '{}'::jsonb AS data, NULL AS key FROM users WHERE id = ${ada.id}
  `, null)
  t.equal(enqueued.length, 1)
  await until(() => service.outbox.deliveries().sent === 1)
  const files = await readdir(join(DATA_DIR, 'mail'))
  t.strictSame(files, [`${enqueued[0]!.id}.eml`])
  const raw = await readFile(join(DATA_DIR, 'mail', files[0]!), 'utf8')
  t.match(raw, `To: ${ada.email}\r\n`)
  t.match(raw, 'From: Community <community@example.org>')
})

t.test('Emails are not written through links', async t => {
  const DATA_DIR = t.testdir({ victim: 'precious', folder: {}, mail: t.fixture('symlink', 'folder') })
  const transport = await createTransport(testConfig({ NODE_ENV: 'development', DATA_DIR }), { info () {} })
  const message = { messageId: '<one@example.org>', from: 'a@example.org', to: 'b@example.org', text: 'Text' }
  t.strictSame(await transport.send(message), {
    status: 'pending', error: `${join(DATA_DIR, 'mail')} is a symbolic link. Delete it.`, isDown: true,
  })
  await rm(join(DATA_DIR, 'mail'))
  await transport.verify()
  await symlink('../victim', join(DATA_DIR, 'mail', 'one.eml.part'))
  t.match(await transport.send(message), { status: 'pending', error: /^ELOOP/ })
  t.equal(await readFile(join(DATA_DIR, 'victim'), 'utf8'), 'precious')
})

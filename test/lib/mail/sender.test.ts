import { readdir, readFile, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'

import { eraseUser } from '#lib/auth/erasure.js'
import { kinds } from '#lib/mail/kinds.js'
import { buildMessage } from '#lib/mail/message.js'
import { countMails, enqueueMails, listMails, retryMails, settle } from '#lib/mail/outbox.js'
import { backoff, Sender } from '#lib/mail/sender.js'
import { SmtpTransport } from '#lib/mail/smtp.js'
import { createTransport, type Transport } from '#lib/mail/transport.js'
import { build, person, testConfig } from '../../helper.ts'
import { freePort } from '../../process.ts'
import { type MailServer, messageIdOf, type Stage, startMailServer } from '../../smtp.ts'
import t, { type Test } from '../../suite.ts'

// Kinds of the tests.
const known = kinds as Record<string, unknown>
known.news = {
  bulk: true,
  async compose ({ data }: { data: { title?: string, fails?: boolean } }) {
    if (data.fails) throw new Error('no words')
    return data.title === undefined ? undefined : { subject: data.title, paragraphs: ['It is news.'] }
  },
}

const app = await build(t)
const { sql } = app
t.beforeEach(async () => { await sql`DELETE FROM mails` })

const TIMES = { turn: 20, reconnect: { first: 20, longest: 40 }, stop: 100 }

/** Starts a sender, which stops with the test. */
function startSender (t: Test, server: { url: string }, options: {
  variables?: NodeJS.Dict<string>, transport?: Transport, sql?: typeof sql, probe?: typeof sql, turn?: number
} = {}) {
  const lines: [details: any, message: string][] = []
  const log = (...line: any[]) => { lines.push(line.length > 1 ? line as [any, string] : [{}, line[0]]) }
  const sender = new Sender({
    sql: options.sql ?? sql,
    probe: options.probe ?? app.database.probe,
    config: testConfig({ SMTP_URL: server.url, MAIL_FROM: 'community@example.org', ...options.variables }),
    log: { info: log, warn: log, error: log },
    transport: options.transport ?? new SmtpTransport(server.url, { connect: 5, send: 5 }),
  }, { ...TIMES, turn: options.turn ?? TIMES.turn })
  sender.start()
  t.teardown(() => sender.stop())
  return { sender, lines, messages: () => lines.map(([, message]) => message) }
}

/** Writes a mail of a kind to a user, later than the one before: times have milliseconds. */
async function enqueue (userId: string, kind = 'test', data = {}, key: string | null = null) {
  await sleep(2)
  return enqueueMails(sql, kind as 'test', sql`
    SELECT ${userId}::uuid AS user_id, ${sql.json(data)}::jsonb AS data, ${key}::text AS key
  `)
}

async function until (holds: () => unknown) {
  const deadline = performance.now() + 30_000
  while (!await holds()) {
    if (performance.now() > deadline) throw new Error(`It does not hold: ${JSON.stringify(await listMails(sql))}`)
    await sleep(10)
  }
}

/** The states of all mails, in the order in which they were written. */
const states = async () => (await sql`SELECT status FROM mails ORDER BY created_at, id`).map(({ status }) => status)

const all = (...wanted: string[]) => until(async () => String(await states()) === String(wanted))

t.test('A mail is sent once, with a Message-ID of its own', async t => {
  const server = await startMailServer(t)
  const { sender, lines } = startSender(t, server)
  const ada = await person(app, 'STUDENT', { first_name: 'Ada', last_name: 'Löve' })
  const [mail] = await enqueue(ada.id)
  await all('sent')
  t.equal(server.mails.length, 1)
  t.strictSame(server.mails[0]!.to, [ada.email])
  const parsed = await server.parse(0)
  t.equal(parsed.messageId, `<${mail!.id}@example.org>`)
  t.match(parsed, {
    from: { name: 'Community', address: 'community@example.org' },
    to: [{ name: 'Ada Löve', address: ada.email }],
    subject: 'Test mail of Community',
    text: /^This mail shows that Community can send mail to you\.\n\nAn operator asked for it on \w+day/,
    html: /<p>This mail shows that Community can send mail to you\.<\/p>\n<p>An operator/,
  })
  t.match(parsed.headers.find(({ key }) => key === 'auto-submitted'), { value: 'auto-generated' })
  t.equal(sender.sent, 1)
  t.notMatch(JSON.stringify(lines), ada.email, 'the log has no address')
  t.match(await listMails(sql, 'sent'), [{ status: 'sent', attempts: 1, error: null, kind: 'test', userId: ada.id }])
})

t.test('An idle sender writes nothing', async t => {
  const server = await startMailServer(t)
  const { sender } = startSender(t, server)
  const { id } = await person(app)
  await enqueue(id)
  await all('sent')
  await sender.stop()
  const readOnly = postgres(app.config.DATABASE_URL!, { connection: { default_transaction_read_only: true } })
  t.teardown(() => readOnly.end())
  const { messages } = startSender(t, server, { sql: readOnly, probe: readOnly })
  await sleep(10 * TIMES.turn)
  t.strictSame(messages(), [])
  await enqueue(id)
  await until(() => messages().includes('The outbox cannot be read or written'))
})

t.test('Mails about an account overtake those to many, which keep to MAIL_RATE', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  for (let n = 0; n < 5; n++) await enqueue(id, 'news', { title: `News ${n}` })
  await enqueue(id)
  // Long enough for two mails: the second one would be released, and the next one claimed instead.
  startSender(t, server, { variables: { MAIL_RATE: '120' }, turn: 500 })
  await until(() => server.mails.length === 2)
  const subjects = () => server.mails.map(({ raw }) => /^Subject: (.*)\r$/m.exec(raw)![1])
  t.strictSame(subjects(), ['Test mail of Community', 'News 0'])
  await enqueue(id)
  await until(() => server.mails.length >= 4)
  t.strictSame(subjects().slice(2, 4), ['Test mail of Community', 'News 1'])
  const start = performance.now()
  await until(() => server.mails.length === 5)
  t.equal(subjects()[4], 'News 2')
  t.ok(performance.now() - start > 400, 'half a second from one to the next')
})

t.test('Mails to many go out at MAIL_RATE, no slower and no faster', async t => {
  // Three a turn, one and a half, half of one
  for (const [rate, count] of [[1800, 60], [900, 30], [300, 10]] as const) {
    await sql`DELETE FROM mails`
    const server = await startMailServer(t)
    const { id } = await person(app)
    await enqueueMails(sql, 'news' as 'test', sql`
      SELECT ${id}::uuid AS user_id, '{"title": "News"}'::jsonb AS data, NULL AS key
      FROM generate_series(1, ${count}::integer)
    `)
    const { sender } = startSender(t, server, { variables: { MAIL_RATE: String(rate) }, turn: 100 })
    await until(() => server.mails.length > 0)
    const start = performance.now()
    await until(() => server.mails.length === count)
    const seconds = (performance.now() - start) / 1000
    await sender.stop()
    t.ok(seconds > 1.6 && seconds < 2.4, `${rate} a minute: ${seconds.toFixed(1)} s`)
  }
})

t.test('A claim is ten mails about an account, and the share of MAIL_RATE in a turn', async t => {
  let finish: (() => void) | undefined
  const server = await startMailServer(t, {
    onData (stream, _session, done) { stream.resume().on('end', () => { finish = () => done(null) }) },
  })
  const { id } = await person(app)
  for (const [kind, count] of [['test', 25], ['news', 5]] as const) {
    for (let n = 0; n < count; n++) await enqueue(id, kind, { title: 'News' })
  }
  // Two a turn
  const { sender } = startSender(t, server, { variables: { MAIL_RATE: '6000' } })
  await until(() => finish)
  const claimed = await sql`
    SELECT kind, count(*)::int FROM mails WHERE status = 'processing' GROUP BY kind ORDER BY kind
  `
  t.strictSame([...claimed], [{ kind: 'news', count: 2 }, { kind: 'test', count: 10 }])
  const stopped = sender.stop()
  finish!()
  await stopped
})

t.test('A user has one mail of a kind and a key', async t => {
  const [{ id }, other] = [await person(app), await person(app)]
  t.equal((await enqueue(id, 'news', {}, 'one')).length, 1)
  t.equal((await enqueue(id, 'news', {}, 'one')).length, 0)
  t.equal((await enqueue(id, 'test', {}, 'one')).length, 1)
  t.equal((await enqueue(id, 'news', {}, 'two')).length, 1)
  t.equal((await enqueue(other.id, 'news', {}, 'one')).length, 1)
  t.equal((await enqueue(id, 'news')).length + (await enqueue(id, 'news')).length, 2)
})

t.test('A mail that is delayed is sent when it is due', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  await enqueueMails(sql, 'test', sql`SELECT ${id}::uuid AS user_id, '{}'::jsonb AS data, NULL AS key`, 0.5)
  const start = performance.now()
  startSender(t, server)
  await all('sent')
  t.ok(performance.now() - start > 300)
})

t.test('A mail of a kind that this version does not know is left to others', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  await sql`
    INSERT INTO mails (kind, bulk, user_id, data, created_at)
    VALUES ('other', false, ${id}, '{}', now() - interval '1 s')
  `
  await enqueue(id)
  startSender(t, server)
  await all('pending', 'sent')
})

t.test('A mail that is not true any more is removed', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  await enqueue(id, 'news')
  startSender(t, server)
  await all()
  t.equal(server.mails.length, 0)
})

t.test('A mail that cannot be written, or is refused for now, is tried again later, and fails in the end', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  await enqueue(id, 'news', { fails: true })
  const { lines } = startSender(t, server)
  for (let attempts = 1; attempts < 8; attempts++) {
    await until(async () => (await sql`SELECT FROM mails WHERE attempts = ${attempts} AND status = 'pending'`).count)
    const [row] = await sql`SELECT round(extract(epoch FROM due_at - now())) AS delay, error FROM mails`
    t.ok(Math.abs(row!.delay - backoff(attempts)) <= 5, `${row!.delay} s`)
    t.equal(row!.error, 'It could not be written')
    await sql`UPDATE mails SET due_at = now()`
  }
  await all('failed')
  t.match(lines.at(-1), [{ kind: 'news' }, 'Mail failed'])
  t.equal(await retryMails(sql, { state: 'unknown' }), 0)
  t.equal(await retryMails(sql, { state: 'failed' }), 1)
})

t.test('Backoff goes from a minute to four hours', async t => {
  t.strictSame([1, 2, 3, 4, 5, 6, 7].map(backoff), [60, 240, 960, 3840, 14_400, 14_400, 14_400])
})

t.test('While the server cannot be reached, mails stay pending and nothing is written', async t => {
  const port = await freePort()
  const { id } = await person(app)
  await enqueue(id)
  const { messages } = startSender(t, { url: `smtp://127.0.0.1:${port}` })
  const warnings = () => messages().filter(message => message.startsWith('The SMTP server cannot be reached'))
  await until(() => warnings().length >= 3)
  t.match(warnings()[0], 'next attempt in 0.02 s: CONN: ')
  t.match(warnings()[2], 'next attempt in 0.04 s')
  t.match(await listMails(sql), [{ status: 'pending', attempts: 0 }])
})

t.test('A connection that is lost within a batch is opened again', async t => {
  const server = await startMailServer(t)
  server.fault = () => server.connections === 1 ? { stage: 'RCPT TO' } : undefined
  const { id } = await person(app)
  for (let n = 0; n < 3; n++) await enqueue(id)
  startSender(t, server)
  await all('pending', 'sent', 'sent')
  t.equal(server.connections, 2)
})

t.test('The mails of a batch are released when the server is lost', async t => {
  const server = await startMailServer(t)
  server.fault = () => ({ stage: server.connections === 1 ? 'final dot' : 'greeting' })
  const { id } = await person(app)
  for (let n = 0; n < 3; n++) await enqueue(id)
  startSender(t, server)
  await all('unknown', 'pending', 'pending')
  const attempts = await sql`SELECT attempts FROM mails ORDER BY created_at, id`
  t.strictSame(attempts.map(({ attempts }) => attempts), [1, 0, 0])
  t.match(await countMails(sql), {
    pending: { count: 2 }, processing: { count: 0 }, failed: { count: 0 }, unknown: { count: 1 },
  })
})

t.test('The claim of a sender that ended becomes unknown, and is sent again only by an operator', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  await enqueue(id)
  const claim = '00000000-0000-4000-8000-000000000001'
  const [mail] = await settle(sql, { outcomes: [], lostClaims: [], claim, batch: { account: 1, bulk: 1 } })
  startSender(t, server)
  await sleep(5 * TIMES.turn)
  t.strictSame(await states(), ['processing'], 'before it expires')
  await sql`UPDATE mails SET due_at = now()`
  await all('unknown')
  t.match(await listMails(sql, 'unknown'), [{ attempts: 1, error: 'The sender ended' }])
  t.equal(server.mails.length, 0)

  // It has not ended: what it says is the truth.
  const outcome = { id: mail!.id, claim, attempts: 1, delay: 0 } as const
  await settle(sql, {
    outcomes: [{ ...outcome, status: 'sent' }], lostClaims: [], claim, batch: { account: 0, bulk: 0 },
  })
  t.strictSame(await states(), ['sent'])
  await sql`UPDATE mails SET status = 'unknown'`
  t.equal(await retryMails(sql, { id: mail!.id }), 1)
  await all('sent')
  t.equal(server.mails.length, 1)
  t.equal(messageIdOf(server.mails[0]!.raw), `${mail!.id}@example.org`)
  await settle(sql, {
    outcomes: [{ ...outcome, status: 'failed' }], lostClaims: [], claim, batch: { account: 0, bulk: 0 },
  })
  t.strictSame(await states(), ['sent'], 'what an earlier claim says does not count')
})

t.test('Mails whose claim was lost with its connection are released', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  await enqueue(id)
  let claims = 0
  // Loses the response to the first claim, after its commit.
  const losing = new Proxy(sql, {
    apply (target, self, [strings, ...values]) {
      const query = Reflect.apply(target, self, [strings, ...values])
      if (!strings[0]?.includes('WITH outcomes') || claims++ > 0) return query
      return query.then(() => { throw new Error('lost') })
    },
  })
  const { messages } = startSender(t, server, { sql: losing })
  await all('sent')
  t.ok(messages().includes('The outbox cannot be read or written'))
  t.equal(server.mails.length, 1)
  t.match(await listMails(sql, 'sent'), [{ attempts: 1 }])
})

t.test('An outcome whose record was lost with its connection counts once', async t => {
  const { id } = await person(app)
  await enqueue(id)
  const claim = '00000000-0000-4000-8000-000000000004'
  const [mail] = await settle(sql, { outcomes: [], lostClaims: [], claim, batch: { account: 1, bulk: 0 } })
  const outcome = { id: mail!.id, claim, status: 'pending', attempts: 1, delay: 60 } as const
  const record = () => settle(sql, { outcomes: [outcome], lostClaims: [], claim, batch: { account: 0, bulk: 0 } })
  const stored = () => sql`SELECT attempts, due_at FROM mails`
  await record()
  const once = await stored()
  await sleep(10)
  await record()
  t.strictSame(await stored(), once)
  t.match(once, [{ attempts: 1 }])
})

t.test('Outcomes that cannot be recorded at the end are in the log', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  const failing = new Proxy(sql, {
    apply (target, self, [strings, ...values]) {
      const isSent = values.some(value => String(value).includes('"status":"sent"'))
      if (isSent) return Promise.reject(new Error('lost'))
      return Reflect.apply(target, self, [strings, ...values])
    },
  })
  await enqueue(id)
  const { sender, messages } = startSender(t, server, { sql: failing })
  await until(() => server.mails.length === 1)
  await sender.stop()
  t.ok(messages().includes('Mails that were sent cannot be recorded'))
})

t.test('A sender that stops finishes its mail and releases the others', async t => {
  let finish!: () => void
  const server = await startMailServer(t, {
    onData (stream, _session, done) { stream.resume().on('end', () => { finish = () => done(null) }) },
  })
  const { id } = await person(app)
  for (let n = 0; n < 3; n++) await enqueue(id)
  const { sender } = startSender(t, server)
  await until(() => finish)
  const stopped = sender.stop()
  finish()
  await stopped
  t.strictSame(await states(), ['sent', 'pending', 'pending'])
})

t.test('A sender that stops gives up a mail whose server does not respond', async t => {
  const server = await startMailServer(t)
  server.fault = () => ({ stage: 'response', silent: true })
  const { id } = await person(app)
  await enqueue(id)
  const { sender } = startSender(t, server)
  await until(() => server.mails.length === 1)
  await sender.stop()
  t.strictSame(await states(), ['unknown'])
})

t.test('A sender goes on with mails whose claim has expired, but for those that are to be sent again', async t => {
  const finish: (() => void)[] = []
  const server = await startMailServer(t, {
    onData (stream, _session, done) { stream.resume().on('end', () => { finish.push(() => done(null)) }) },
  })
  const { id } = await person(app)
  for (const key of ['one', 'two', 'three']) await enqueue(id, 'test', {}, key)
  startSender(t, server, { turn: 2000 })
  await until(() => finish.length === 1)
  // While a machine sleeps, its clock may stand still; those of others do not.
  await sql`UPDATE mails SET due_at = now()`
  await settle(sql, {
    outcomes: [], lostClaims: [], claim: '00000000-0000-4000-8000-000000000003', batch: { account: 0, bulk: 0 },
  })
  t.strictSame(await states(), ['unknown', 'unknown', 'unknown'])
  await sql`UPDATE mails SET status = 'pending', claim = NULL, due_at = now() + interval '1 hour' WHERE key = 'two'`
  finish[0]!()
  await until(() => finish.length === 2)
  finish[1]!()
  await all('sent', 'pending', 'sent')
})

t.test('A mail whose account is erased while it waits in a batch is not sent', async t => {
  const finish: (() => void)[] = []
  const server = await startMailServer(t, {
    onData (stream, _session, done) { stream.resume().on('end', () => { finish.push(() => done(null)) }) },
  })
  const [ada, grace] = [await person(app), await person(app)]
  await enqueue(ada.id)
  await enqueue(grace.id)
  const { sender, messages } = startSender(t, server, { turn: 1000 })
  await until(() => finish.length === 1)
  await eraseUser(sql, grace.email, {})
  finish[0]!()
  await all('sent')
  t.strictSame(messages().sort(), ['Mail obsolete', 'Mail sent'])
  t.equal(finish.length, 1)
  t.equal(sender.sent, 1)
})

t.test('Mails go with the account, also while they are sent', async t => {
  const server = await startMailServer(t)
  const ada = await person(app)
  await enqueue(ada.id)
  const claim = '00000000-0000-4000-8000-000000000002'
  const [mail] = await settle(sql, { outcomes: [], lostClaims: [], claim, batch: { account: 1, bulk: 0 } })
  await eraseUser(sql, ada.email, {})
  const outcome = { id: mail!.id, claim, status: 'sent', attempts: 1, delay: 0 } as const
  await settle(sql, { outcomes: [outcome], lostClaims: [], claim, batch: { account: 0, bulk: 0 } })
  t.strictSame(await states(), [])
  t.equal(server.mails.length, 0)
})

t.test('Past mails are removed by what is sent later', async t => {
  const server = await startMailServer(t)
  const { id } = await person(app)
  for (const key of ['one', 'two']) await enqueue(id, 'test', {}, key)
  startSender(t, server)
  await all('sent', 'sent')
  await sql`UPDATE mails SET settled_at = now() - interval '31 days' WHERE key = 'one'`
  await enqueue(id, 'test', {}, 'three')
  await all('sent', 'sent')
  t.strictSame((await sql`SELECT key FROM mails ORDER BY id`).map(({ key }) => key), ['two', 'three'])
})

t.test('Names and texts cannot forge headers, lines or markup', async t => {
  const server = await startMailServer(t)
  const evil = 'Ada\r\nBcc: eve@example.org\r\n\r\n<script>alert("1")</script>\u2028&'
  const ada = await person(app, 'STUDENT', { first_name: evil, last_name: evil })
  await enqueue(ada.id, 'news', { title: evil })
  startSender(t, server)
  await all('sent')
  const [{ to }] = server.mails as [MailServer['mails'][0]]
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
    const recipient = { email, firstName: 'Ada', lastName: 'Lovelace' }
    const { envelope } = await buildMessage('one', recipient, { subject: 'One', paragraphs: [] }, app.config)
    t.strictSame(envelope, { from: 'community@example.org', to })
  }
})

t.test('A long name or subject is cut', async t => {
  const server = await startMailServer(t)
  const ada = await person(app, 'STUDENT', { first_name: '😀'.repeat(200), last_name: 'x'.repeat(1_000_000) })
  await enqueue(ada.id, 'news', { title: 'y'.repeat(10_000) })
  startSender(t, server)
  await all('sent')
  const { to, subject } = await server.parse(0)
  t.strictSame([to, subject], [[{ name: `${'😀'.repeat(200)}…`, address: ada.email }], `${'y'.repeat(200)}…`])
  const [header] = server.mails[0]!.raw.split('\r\n\r\n')
  t.ok(Math.max(...header!.split('\r\n').map(({ length }) => length)) <= 998)
})

t.test('Two senders with faults at every stage send each mail once or not at all', async t => {
  const server = await startMailServer(t)
  const faults = ['greeting', 'MAIL FROM', 'RCPT TO', 'DATA', 'final dot', 'response', undefined, undefined] as const
  server.fault = () => {
    const stage = faults[(server.connections - 1) % faults.length]
    return stage && { stage }
  }
  const { id } = await person(app)
  const mails = 60
  await sql`
    INSERT INTO mails (kind, bulk, user_id, data)
    SELECT 'test', false, ${id}, '{}' FROM generate_series(1, ${mails}::int)
  `
  for (let n = 0; n < 2; n++) startSender(t, server)
  await until(async () => {
    await sql`UPDATE mails SET due_at = now() WHERE status = 'pending' AND due_at > now()`
    return !(await states()).some(state => ['pending', 'processing'].includes(state))
  })
  const counts = server.counts()
  const found: Record<string, number> = { 'sent 1': 0, 'unknown 0': 0, 'unknown 1': 0 }
  for (const { id, status } of await sql`SELECT id, status FROM mails`) {
    const outcome = `${status} ${counts.get(`${id}@example.org`) ?? 0}`
    found[outcome] = (found[outcome] ?? 0) + 1
  }
  const breaks = (stage: Stage) => server.breaks.filter(broken => broken === stage).length
  const [lost, arrived] = [breaks('final dot'), breaks('response')]
  t.strictSame(found, { 'sent 1': mails - lost - arrived, 'unknown 0': lost, 'unknown 1': arrived })
})

t.test('In development mails are files', async t => {
  const DATA_DIR = t.testdir()
  const service = await build(t, { NODE_ENV: 'development', DATA_DIR })
  const ada = await person(service)
  const enqueued = await service.mail.enqueue('test', service.sql`
    SELECT id AS user_id, '{}'::jsonb AS data, NULL AS key FROM users WHERE id = ${ada.id}
  `)
  t.equal(enqueued.length, 1)
  await until(() => service.mail.sent() === 1)
  const files = await readdir(join(DATA_DIR, 'mail'))
  t.strictSame(files, [`${enqueued[0]!.id}.eml`])
  const raw = await readFile(join(DATA_DIR, 'mail', files[0]!), 'utf8')
  t.match(raw, `To: Ada Lovelace <${ada.email}>`)
  t.match(raw, 'From: Community <community@example.org>')
})

t.test('A file that cannot be written is a mail for later', async t => {
  const DATA_DIR = t.testdir()
  const lines: string[] = []
  const config = testConfig({ NODE_ENV: 'development', DATA_DIR })
  const transport = await createTransport(config, { info: (line: string) => { lines.push(line) } })
  const message = { id: 'one', envelope: { from: 'a@example.org', to: 'b@example.org' }, raw: Buffer.from('Text') }
  t.strictSame(await transport.send(message), { status: 'pending', error: 'ENOENT' })
  await transport.connect()
  t.strictSame(await transport.send(message), { status: 'sent' })
  t.strictSame(lines, [`Mail written to ${join(DATA_DIR, 'mail', 'one.eml')}`])
})

t.test('Files of mails are in no other folder, and replace no other file', async t => {
  const DATA_DIR = t.testdir({ victim: 'precious', folder: {}, mail: t.fixture('symlink', 'folder') })
  const transport = await createTransport(testConfig({ NODE_ENV: 'development', DATA_DIR }), { info () {} })
  await t.rejects(transport.connect(), { message: `${join(DATA_DIR, 'mail')} is a symbolic link: remove it` })
  await rm(join(DATA_DIR, 'mail'))
  await transport.connect()
  await symlink('../victim', join(DATA_DIR, 'mail', 'one.eml.part'))
  const message = { id: 'one', envelope: { from: 'a@example.org', to: 'b@example.org' }, raw: Buffer.from('Text') }
  t.strictSame(await transport.send(message), { status: 'pending', error: 'ELOOP' })
  t.equal(await readFile(join(DATA_DIR, 'victim'), 'utf8'), 'precious')
})

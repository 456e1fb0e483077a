import { setTimeout as sleep } from 'node:timers/promises'

import type { SMTPServerOptions } from 'smtp-server'

import { SmtpTransport } from '#lib/mail/smtp.js'
import { freePort } from '../../process.ts'
import { type Fault, startMailServer } from '../../smtp.ts'
import t, { type Test } from '../../suite.ts'

const raw = Buffer.from('Message-ID: <one@example.org>\r\nSubject: One\r\n\r\nText\r\n')
const envelope = { from: 'community@example.org', to: 'ada@example.org' }
const message = { id: 'one', envelope, raw }
const SHORT = { connect: 0.3, send: 0.5 }

/** An error as smtp-server sends it. */
const refusal = (responseCode: number, text = 'no') => Object.assign(new Error(text), { responseCode })

/** Sends the mail once through a fault. Returns what became of it, and how often it arrived. */
async function attempt (t: Test, fault?: Fault, options?: SMTPServerOptions) {
  const server = await startMailServer(t, options)
  server.fault = () => fault
  const transport = new SmtpTransport(server.url, SHORT)
  t.teardown(() => transport.close())
  await transport.connect()
  const delivery = await transport.send(message)
  // A mail that is on its way arrives.
  await sleep(50)
  return { ...delivery, arrived: server.mails.length }
}

t.test('A mail is sent, and others over the same connection', async t => {
  const server = await startMailServer(t)
  const transport = new SmtpTransport(server.url)
  t.teardown(() => transport.close())
  await t.rejects(async () => transport.send(message), 'before it connects')
  for (let n = 0; n < 3; n++) {
    await transport.connect()
    t.strictSame(await transport.send(message), { status: 'sent' })
  }
  t.equal(server.connections, 1)
  t.strictSame(server.mails[0], { to: [envelope.to], raw: raw.toString() })
  transport.close()
  await transport.connect()
  t.equal(server.connections, 2)
})

for (const [stage, timeout] of [
  ['connect', 'CONN: ETIMEDOUT'], ['greeting', 'CONN: ETIMEDOUT'], ['EHLO', 'SMTP: TimeoutError'],
] as const) {
  for (const silent of [false, true]) {
    t.test(`A connection that ${silent ? 'is silent' : 'breaks'} at ${stage} is no connection`, async t => {
      await t.rejects(attempt(t, { stage, silent }), { message: silent ? timeout : 'CONN: ECONNECTION' })
    })
  }
}

for (const stage of ['MAIL FROM', 'RCPT TO', 'DATA'] as const) {
  for (const silent of [false, true]) {
    t.test(`A mail whose connection ${silent ? 'is silent' : 'breaks'} at ${stage} is pending`, async t => {
      t.match(await attempt(t, { stage, silent }), { status: 'pending', arrived: 0 })
    })
  }
}

for (const [stage, arrived] of [['final dot', 0], ['response', 1]] as const) {
  for (const silent of [false, true]) {
    t.test(`A mail whose connection ${silent ? 'is silent' : 'breaks'} at the ${stage} is unknown`, async t => {
      t.match(await attempt(t, { stage, silent }), { status: 'unknown', arrived })
    })
  }
}

t.test('A mail whose connection breaks before its last bytes is pending', async t => {
  const server = await startMailServer(t)
  server.fault = () => ({ stage: 'start of the mail' })
  const transport = new SmtpTransport(server.url, { connect: 1, send: 5 })
  await transport.connect()
  const large = Buffer.concat([raw, Buffer.alloc(50_000_000, 'x'.repeat(70) + '\r\n')])
  t.match(await transport.send({ ...message, raw: large }), { status: 'pending' })
})

/** The options of a server that refuses the mail at a stage. */
const REFUSALS: Record<string, (error: Error) => SMTPServerOptions> = {
  'MAIL FROM': error => ({ onMailFrom: (_address, _session, done) => done(error) }),
  'RCPT TO': error => ({ onRcptTo: (_address, _session, done) => done(error) }),
  DATA: error => ({ onData: (stream, _session, done) => { stream.resume().on('end', () => done(error)) } }),
}

for (const [stage, refuse] of Object.entries(REFUSALS)) {
  t.test(`A mail that the server refuses for now at ${stage} is pending`, async t => {
    t.match(await attempt(t, undefined, refuse(refusal(451))), { status: 'pending', error: `${stage}: 451` })
  })

  const status = stage === 'MAIL FROM' ? 'pending' : 'failed'
  t.test(`A mail that the server refuses for good at ${stage} is ${status}`, async t => {
    const found = await attempt(t, undefined, refuse(refusal(550, '5.1.1 no such user: ada@example.org')))
    t.match(found, { status, error: `${stage}: 550 5.1.1` }, 'an error without the address')
  })
}

t.test('A mail to an address with a line break has failed', async t => {
  const server = await startMailServer(t)
  const transport = new SmtpTransport(server.url)
  t.teardown(() => transport.close())
  for (const to of ['ada@example.org\r\nRCPT TO:<eve@example.org>', 'ada@example.org> X', '']) {
    await transport.connect()
    t.match(await transport.send({ ...message, envelope: { ...envelope, to } }), { status: 'failed' })
  }
  t.equal(server.mails.length, 0)
})

t.test('A mail that is larger than the server takes has failed', async t => {
  t.match(await attempt(t, undefined, { size: 10 }), { status: 'failed' })
})

t.test('A server that cannot be reached is an error', async t => {
  const port = await freePort()
  await t.rejects(new SmtpTransport(`smtp://127.0.0.1:${port}`).connect(), { message: 'CONN: ESOCKET' })
})

import { setTimeout as sleep } from 'node:timers/promises'

import t from 'tap'

import { SmtpTransport } from '#lib/mail/smtp.js'
import { type Fault, startMailServer } from '../../smtp.ts'

const raw = Buffer.from('Message-ID: <one@example.org>\r\nSubject: One\r\n\r\nText\r\n')
const envelope = { from: 'community@example.org', to: 'ada@example.org' }
const message = { id: 'one', envelope, raw }
const SHORT = { connect: 0.3, send: 0.5 }

/** An error as smtp-server sends it. */
const refusal = (responseCode: number, text = 'no') => Object.assign(new Error(text), { responseCode })

/** Sends the mail once through a fault. Returns what became of it, and how often it arrived. */
async function attempt (t: import('tap').Test, fault?: Fault, options?: Parameters<typeof startMailServer>[1]) {
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

for (const stage of ['connect', 'greeting', 'EHLO'] as const) {
  for (const silent of [false, true]) {
    t.test(`A connection that ${silent ? 'is silent' : 'breaks'} at ${stage} is no connection`, async t => {
      await t.rejects(attempt(t, { stage, silent }), { message: /^(SMTP|CONN): / })
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

for (const [stage, options] of [
  ['MAIL FROM', (code: number) => ({ onMailFrom: (_address: unknown, _session: unknown, done: (error: Error) => void) => done(refusal(code)) })],
  ['RCPT TO', (code: number) => ({ onRcptTo: (_address: unknown, _session: unknown, done: (error: Error) => void) => done(refusal(code, '5.1.1 No <ada@example.org>')) })],
  ['DATA', (code: number) => ({ onData: (stream: NodeJS.ReadableStream, _session: unknown, done: (error: Error) => void) => { stream.resume().on('end', () => done(refusal(code))) } })],
] as const) {
  t.test(`A mail that the server refuses for now at ${stage} is pending`, async t => {
    t.match(await attempt(t, undefined, options(451)), { status: 'pending', error: `${stage}: 451` })
  })
  t.test(`A mail that the server refuses at ${stage} ${stage === 'MAIL FROM' ? 'is pending' : 'has failed'}`, async t => {
    const { status, error } = await attempt(t, undefined, options(550))
    t.equal(status, stage === 'MAIL FROM' ? 'pending' : 'failed')
    t.equal(error, stage === 'RCPT TO' ? 'RCPT TO: 550 5.1.1' : `${stage}: 550`, 'without the address')
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
  const { port } = await startMailServer({ teardown: task => task() })
  await t.rejects(new SmtpTransport(`smtp://127.0.0.1:${port}`).connect(), { message: /ESOCKET|ECONNREFUSED/ })
})

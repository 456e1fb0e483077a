import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import type { SMTPServerOptions } from 'smtp-server'

import { SmtpTransport } from '#lib/email/smtp.js'
import { testConfig } from '../../helper.ts'
import { freePort } from '../../process.ts'
import { type Fault, type Stage, STAGES, startMailServer } from '../../smtp.ts'
import t, { type Test } from '../../suite.ts'

const message = {
  messageId: '<one@example.org>', from: 'community@example.org', to: 'ada@example.org', subject: 'One', text: 'Text',
}
const TIMES = { connect: 30_000, send: 30_000, idle: 1000 }
const REFUSED = 'The SMTP server refused'

/** A transport, which is closed with the test. */
function open (t: Test, url: string, times = TIMES) {
  const transport = new SmtpTransport(testConfig({ SMTP_URL: url, MAIL_FROM: 'Chess <community@example.org>' }), times)
  t.teardown(() => transport.close())
  return transport
}

/** An error as smtp-server sends it. */
const refusal = (responseCode: number, text = 'no') => Object.assign(new Error(text), { responseCode })

const isGreeting = (stage: Stage) => ['connect', 'greeting'].includes(stage)

/** Sends the email once through a fault. Returns the outcome and how often the email arrived. */
async function attempt (t: Test, fault?: Fault, options?: SMTPServerOptions) {
  const server = await startMailServer(t, options)
  server.fault = () => fault
  // Only what is silent is waited for, and not for long.
  const wait = fault?.silent && (isGreeting(fault.stage) ? { connect: 300 } : { send: 1000 })
  const delivery = await open(t, server.url, { ...TIMES, ...wait }).send(message)
  // An email that is on its way arrives.
  await sleep(50)
  return { ...delivery, arrived: server.emails.length }
}

t.test('Emails are sent over the same connections, which are closed when they are idle', async t => {
  const server = await startMailServer(t)
  const transport = open(t, server.url, { ...TIMES, idle: 100 })
  await transport.verify()
  for (let n = 0; n < 3; n++) t.strictSame(await transport.send(message), { status: 'sent' })
  t.equal(server.connections, 2, 'one to ask, and one to send')
  t.match(server.emails[0], { to: [message.to], raw: /^From: community@example.org\r\n(.+\r\n)+\r\nText\r\n$/ })
  while (server.open() > 0) await sleep(10)
  t.strictSame(await transport.send(message), { status: 'sent' })
})

t.test('The service greets with the domain of MAIL_FROM', async t => {
  const names: string[] = []
  const server = await startMailServer(t, {
    onMailFrom (_address, { hostNameAppearsAs }, done) {
      names.push(String(hostNameAppearsAs))
      done()
    },
  })
  await open(t, server.url).send(message)
  t.strictSame(names, ['example.org'])
})

for (const silent of [false, true]) {
  t.test(`An email whose connection ${silent ? 'is silent' : 'breaks'} at any stage is pending`, async t => {
    await Promise.all(STAGES.map(async stage => {
      const outcome = await attempt(t, { stage, silent })
      const mayHaveArrived = !(silent && isGreeting(stage))
      const arrived = stage === 'response' ? 1 : 0
      t.match(outcome, { status: 'pending', isDown: true, mayHaveArrived, arrived }, stage)
      t.equal(outcome.error, !silent
        ? 'The SMTP server has closed the connection'
        : isGreeting(stage)
          ? 'The SMTP server did not greet in time. If its port starts with TLS, use smtps://'
          : 'The SMTP server did not respond in time', stage)
    }))
  })
}

/** The options of a server that refuses the email at a stage, and the words for it. */
const REFUSALS: [stage: string, refused: string, refuse: (error: Error) => SMTPServerOptions][] = [
  ['MAIL FROM', 'the sender', error => ({ onMailFrom: (_address, _session, done) => done(error) })],
  ['RCPT TO', 'the recipient', error => ({ onRcptTo: (_address, _session, done) => done(error) })],
  ['DATA', 'the message', error => ({
    onData: (stream, _session, done) => { stream.resume().on('end', () => done(error)) },
  })],
]

for (const [stage, refused, refuse] of REFUSALS) {
  t.test(`An email that the server refuses for now at ${stage} is pending`, async t => {
    t.match(await attempt(t, undefined, refuse(refusal(451))), {
      status: 'pending', error: `${REFUSED} ${refused}: 451`, isDown: false, mayHaveArrived: false,
    })
  })

  const status = stage === 'MAIL FROM' ? 'pending' : 'failed'
  t.test(`An email that the server refuses for good at ${stage} is ${status}`, async t => {
    const found = await attempt(t, undefined, refuse(refusal(550, '5.1.1 no such user: ada@example.org')))
    t.match(found, { status, error: `${REFUSED} ${refused}: 550 5.1.1` }, 'an error without the address')
  })
}

t.test('A server that refuses the connection', async t => {
  const options: SMTPServerOptions = { onConnect: (_session, done) => done(refusal(554)) }
  t.match(await attempt(t, undefined, options), { status: 'pending', error: `${REFUSED} the connection: 554` })
})

t.test('A server that closes the service is down', async t => {
  const options = { onMailFrom: (_address: unknown, _session: unknown, done: any) => done(refusal(421)) }
  t.match(await attempt(t, undefined, options), { status: 'pending', isDown: true })
})

t.test('An email to an address with a line break has failed', async t => {
  const server = await startMailServer(t)
  for (const address of ['ada@example.org\r\nRCPT TO:<eve@example.org>', 'ada@example.org> X']) {
    const { status } = await open(t, server.url).send({ ...message, to: { name: '', address } })
    const recipients = server.emails.map(({ to }) => to)
    t.ok(status === 'failed' || recipients.at(-1)?.length === 1, JSON.stringify(recipients))
  }
  t.match(await open(t, server.url).send({ ...message, to: '' }), {
    status: 'failed', error: 'The address is not valid',
  })
})

t.test('An unreachable server has an explanatory error message', async t => {
  const refused = open(t, `smtp://127.0.0.1:${await freePort()}`)
  await t.rejects(refused.verify(), {
    message: /^The SMTP server refused the connection \(connect ECONNREFUSED 127\.0\.0\.1:\d+\)\. Check that/,
  })
  const unknown = open(t, 'smtp://nowhere.invalid')
  await t.rejects(unknown.verify(), {
    message: /^The name of the SMTP server cannot be resolved \(.* nowhere.invalid\)$/,
  })
  const plain = await startMailServer(t)
  const secure = open(t, plain.url.replace('smtp:', 'smtps:'))
  await t.rejects(secure.verify(), {
    message: 'The SMTP server does not start with TLS on this port. Use smtp:// instead of smtps://',
  })
})

for (const [url, port] of [
  ['smtp://127.0.0.1', 25], ['smtp://user:password@127.0.0.1', 587], ['smtps://user:password@127.0.0.1', 465],
] as const) {
  t.test(`The port of ${url} is ${port}`, async t => {
    const ports: number[] = []
    t.intercept(Socket.prototype, 'connect', {
      value (this: Socket, options: unknown) {
        ports.push(Number(Object([options].flat()[0]).port))
        return this.destroy(new Error('not here'))
      },
    })
    await t.rejects(open(t, url).verify(), { message: 'not here' })
    t.strictSame(ports, [port])
  })
}

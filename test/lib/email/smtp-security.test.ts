import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import type { SMTPServerOptions } from 'smtp-server'

import { SmtpTransport } from '#lib/email/smtp.js'
import { testConfig } from '../../helper.ts'
import { startMailServer } from '../../smtp.ts'
import t, { type Test } from '../../suite.ts'

const USER = 'user@example.org'
const PASSWORD = 'a:b/c@d%'

// A certificate that only signs itself.
const directory = t.testdir()
const [keyFile, certFile] = [join(directory, 'key.pem'), join(directory, 'cert.pem')]
await promisify(execFile)('openssl', [
  'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyFile,
  '-out', certFile, '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1',
])
const certificate = { key: await readFile(keyFile), cert: await readFile(certFile) }

/** A server that takes this user and no other. `seen` has the attempts, each with whether it was encrypted. */
async function startSecureServer (t: Test, options: SMTPServerOptions) {
  const seen: { user?: string, isSecure: boolean }[] = []
  const server = await startMailServer(t, {
    ...certificate,
    disabledCommands: [],
    allowInsecureAuth: true,
    onAuth ({ username, password }, { secure }, done) {
      seen.push({ user: username, isSecure: secure })
      if (username === USER && password === PASSWORD) done(null, { user: username })
      else done(Object.assign(new Error('5.7.8 Not this user'), { responseCode: 535 }))
    },
    ...options,
  })
  const address = (protocol: string, user = USER, password = PASSWORD, host = '127.0.0.1') =>
    `${protocol}://${encodeURIComponent(user)}:${encodeURIComponent(password)}@${host}:${server.port}`
  return { ...server, seen, address }
}

const message = { from: 'community@example.org', to: 'ada@example.org', subject: 'One', text: 'Text' }

const configOf = (url: string) => ({ SMTP_URL: url, MAIL_FROM: 'community@example.org' })

/** Asks the server, and closes the connection. */
async function verify (url: string) {
  const transport = new SmtpTransport(testConfig(configOf(url)), { connect: 5000, send: 5000, idle: 5000 })
  try {
    await transport.verify()
  } finally {
    transport.close()
  }
}

/** Sends an email in a process that trusts the certificate: Node.js reads that variable at its start. */
async function sendTrusting (url: string) {
  const script = `
    const { SmtpTransport } = await import('${import.meta.resolve('#lib/email/smtp.js')}')
    const transport = new SmtpTransport(${JSON.stringify(configOf(url))})
    const { status } = await transport.send(${JSON.stringify(message)})
    transport.close()
    process.stdout.write(status)
  `
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
    env: { ...process.env, NODE_EXTRA_CA_CERTS: certFile },
  })
  return stdout
}

for (const [protocol, options] of [['smtps', { secure: true }], ['smtp', {}]] as const) {
  t.test(`${protocol}: with a user an email is sent by TLS, to a server whose certificate is valid`, async t => {
    const { address, seen, emails } = await startSecureServer(t, options)
    t.equal(await sendTrusting(address(protocol)), 'sent')
    t.strictSame(seen, [{ user: USER, isSecure: true }])
    t.equal(emails.length, 1)
  })

  t.test(`${protocol}: a server whose certificate is not valid gets neither email nor password`, async t => {
    const { address, seen } = await startSecureServer(t, options)
    await t.rejects(verify(address(protocol)), {
      message: 'The certificate of the SMTP server is not valid (self-signed certificate). Trust its CA with ' +
        'NODE_EXTRA_CA_CERTS, or set tls=unverified in SMTP_URL',
    })
    t.strictSame(seen, [])
  })

  t.test(`${protocol}: with ?tls=unverified any certificate will do`, async t => {
    const { address, seen } = await startSecureServer(t, options)
    await verify(`${address(protocol)}?tls=unverified`)
    t.strictSame(seen, [{ user: USER, isSecure: true }])
  })
}

t.test('A user signs in without TLS only on this machine', async t => {
  const { address, seen } = await startSecureServer(t, { disabledCommands: ['STARTTLS'] })
  await verify(address('smtp'))
  t.strictSame(seen, [{ user: USER, isSecure: false }])
  await t.rejects(verify(address('smtp', USER, PASSWORD, '0.0.0.0')), { message: /^The SMTP server refused TLS: 5/ })
  t.equal(seen.length, 1, 'the password was not sent')
})

t.test('A user that is refused is an error with the codes of the server', async t => {
  const { address } = await startSecureServer(t, { disabledCommands: ['STARTTLS'] })
  await t.rejects(verify(address('smtp', USER, 'wrong')), {
    message: 'The SMTP server refused the user or password: 535 5.7.8',
  })
  await t.rejects(verify(address('smtp', USER, '')), { message: 'Missing credentials for "PLAIN"' })
})

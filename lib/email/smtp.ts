import { createTransport, type SendMailOptions } from 'nodemailer'

import type { Config } from '../config.ts'
import { isLoopback } from '../formats.ts'
import { senderOf } from './message.ts'
import { LEASE_SECONDS } from './outbox.ts'
import type { Delivery, Transport } from './transport.ts'

/** Connections to the server. */
export const CONNECTIONS = 4

/** Times in milliseconds. */
const TIMES = {
  /**
   * To connect, and then to be greeted. Some servers delay the greeting, to see who does not wait for it; RFC 5321
   * (§ 4.5.3.2.1) waits for five minutes.
   */
  connect: 30_000,
  /** For an email, with the wait for a connection. It ends before another sender may claim the email. */
  send: LEASE_SECONDS * 1000 - 30_000,
  /** After which an unused connection is closed. */
  idle: 10_000,
}

/** Connections to an SMTP server. */
export class SmtpTransport implements Transport {
  readonly #transporter
  readonly #sendTime: number

  constructor (config: Config, times = TIMES) {
    const { protocol, hostname, port, username, password, searchParams } = new URL(config.SMTP_URL!)
    const secure = protocol === 'smtps:'
    const auth = username ? { user: decodeURIComponent(username), pass: decodeURIComponent(password) } : undefined
    this.#sendTime = times.send
    this.#transporter = createTransport({
      pool: true,
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port) || (secure ? 465 : auth ? 587 : 25),
      secure,
      auth,
      // A password crosses no network in the clear.
      requireTLS: auth !== undefined && !isLoopback(hostname),
      tls: { rejectUnauthorized: searchParams.get('tls') !== 'unverified' },
      // Strict servers refuse an address in brackets, the name of a machine that has no domain.
      name: senderOf(config).domain,
      maxConnections: CONNECTIONS,
      // Only for a connection that the server has closed while it was idle.
      maxRequeues: 1,
      idleTimeout: times.idle,
      connectionTimeout: times.connect,
      greetingTimeout: times.connect,
      socketTimeout: times.send,
      disableFileAccess: true,
      disableUrlAccess: true,
    })
  }

  async verify () {
    try {
      await this.#transporter.verify()
    } catch (error) {
      throw new Error(describeFailure(error as SmtpError))
    }
  }

  async send (message: SendMailOptions): Promise<Delivery> {
    try {
      await this.#transporter.sendMail({ ...message, signal: AbortSignal.timeout(this.#sendTime) })
      return { status: 'sent' }
    } catch (error) {
      const { responseCode = 0, command = '' } = error as SmtpError
      const isAboutMessage = /^(MAIL FROM|RCPT TO|DATA|API)$/.test(command)
      return {
        status: isRefused(error as SmtpError) ? 'failed' : 'pending',
        error: describeFailure(error as SmtpError),
        isDown: !isAboutMessage || responseCode === 421,
      }
    }
  }

  close () {
    this.#transporter.close({ force: true })
  }
}

/** An error of nodemailer: the server's code, or where there is none, its own; and the command. */
interface SmtpError extends Error {
  responseCode?: number
  response?: string
  code?: string
  command?: string
}

/** Whether the same message would be refused again. A server that refuses the sender has a wrong configuration. */
function isRefused ({ responseCode = 0, code = '', command = '' }: SmtpError) {
  // Without a response, nodemailer has not even asked: this is not an address.
  return responseCode === 0 ? code === 'EENVELOPE' : responseCode >= 500 && /^(RCPT TO|DATA)$/.test(command)
}

/** The parts that a server refuses, by the command. */
const REFUSED: Record<string, string> = {
  'MAIL FROM': 'the sender', 'RCPT TO': 'the recipient', DATA: 'the message', STARTTLS: 'TLS',
}

/** The cause of a failure in words, with the codes of the server, but without its text: that may have the address. */
function describeFailure ({ command = '', responseCode, response = '', code = '', message }: SmtpError) {
  if (responseCode) {
    const [enhanced] = /(?<=^\d{3}[ -])\d\.\d{1,3}\.\d{1,3}/.exec(response) ?? []
    const refused = command.startsWith('AUTH') ? 'the user or the password' : REFUSED[command] ?? 'the connection'
    return [`The SMTP server refuses ${refused}:`, responseCode, enhanced].filter(Boolean).join(' ')
  }
  const known = CAUSES.find(([pattern]) => pattern.test(`${code} ${message}`))
  return known ? known[1].replace('%', message) : message
}

/** The causes of failures without a response, in words. Other causes say what is wrong by themselves. */
const CAUSES: [pattern: RegExp, words: string][] = [
  [/ECONNREFUSED/, 'The SMTP server refuses the connection (%). Check that it runs at this host and port'],
  [/EDNS/, 'The name of the SMTP server cannot be resolved (%)'],
  [/wrong version number/i, 'The port of the SMTP server does not begin with TLS. Use smtp:// instead of smtps://'],
  [/Greeting never received/, 'The SMTP server does not greet in time. Use smtps:// if its port begins with TLS'],
  [/ETIMEDOUT|EABORT/, 'The SMTP server does not respond in time'],
  [/certificate/i, 'The certificate of the SMTP server is not valid (%). Trust its CA with NODE_EXTRA_CA_CERTS, or ' +
    'set tls=unverified in SMTP_URL'],
  [/ECONNECTION/, 'The SMTP server has closed the connection'],
  [/EENVELOPE/, 'The address is not valid'],
]

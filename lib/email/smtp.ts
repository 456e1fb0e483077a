import { createTransport, type SendMailOptions } from 'nodemailer'

import type { Config } from '../config/config.ts'
import { isLoopback } from '../values/formats.ts'
import { LEASE_SECONDS } from './emails.ts'
import { senderOf } from './content.ts'
import type { Delivery, Transport } from './sender.ts'

const TIMES_MS = {
  /**
   * For connecting, and for the greeting. Some servers delay the greeting to detect spammers, which do not wait. RFC
   * 5321 (§ 4.5.3.2.1) recommends five minutes.
   */
  connect: 30_000,
  /** For an email, including the wait for a connection. It must end before another sender may claim the email. */
  send: LEASE_SECONDS * 1000 - 30_000,
  /** Until an unused connection is closed. */
  idle: 10_000,
}

/**
 * Sends emails through an SMTP server. With the defaults of nodemailer, an email would arrive six times if the server
 * closes the connection after it has taken the email, and a password could cross a network unencrypted.
 */
export class SmtpTransport implements Transport {
  readonly #transporter
  readonly #sendMs: number

  constructor (config: Config, times = TIMES_MS) {
    const { protocol, hostname, port, username, password, searchParams } = new URL(config.SMTP_URL!)
    const secure = protocol === 'smtps:'
    const auth = username ? { user: decodeURIComponent(username), pass: decodeURIComponent(password) } : undefined
    this.#sendMs = times.send
    this.#transporter = createTransport({
      pool: true,
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port) || (secure ? 465 : auth ? 587 : 25),
      secure,
      auth,
      // Passwords must not cross a network unencrypted.
      requireTLS: auth !== undefined && !isLoopback(hostname),
      tls: { rejectUnauthorized: searchParams.get('tls') !== 'unverified' },
      // Strict servers refuse the default of machines without a domain, which is an IP address in brackets.
      name: senderOf(config).domain,
      // If the server closes a connection after it has taken an email, each retry sends it again. The default is 5.
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
      throw new Error(describeSmtpError(error as SmtpError))
    }
  }

  async send (mail: SendMailOptions): Promise<Delivery> {
    try {
      await this.#transporter.sendMail({ ...mail, signal: AbortSignal.timeout(this.#sendMs) })
      return { status: 'sent' }
    } catch (error) {
      const { responseCode = 0, command = '', code = '', message } = error as SmtpError
      const isAboutMessage = /^(MAIL FROM|RCPT TO|DATA|API)$/.test(command)
      return {
        status: isRefused(error as SmtpError) ? 'failed' : 'pending',
        error: describeSmtpError(error as SmtpError),
        mayHaveArrived: responseCode === 0 && !NOT_REACHED.test(`${code} ${message}`),
        isDown: !isAboutMessage || responseCode === 421,
      }
    }
  }

  close () {
    this.#transporter.close({ force: true })
  }
}

/** An error of nodemailer, with the SMTP command and either the server's response or nodemailer's own code. */
interface SmtpError extends Error {
  responseCode?: number
  response?: string
  code?: string
  command?: string
}

/** Failures of a connection before it can carry an email. */
const NOT_REACHED = /ECONNREFUSED|EDNS|EENVELOPE|Greeting never received/

/** Tells whether a retry is pointless. If the server refuses the sender, the configuration is wrong instead. */
function isRefused ({ responseCode = 0, code = '', command = '' }: SmtpError) {
  // Without a response, EENVELOPE means that nodemailer considers the address invalid.
  return responseCode === 0 ? code === 'EENVELOPE' : responseCode >= 500 && /^(RCPT TO|DATA)$/.test(command)
}

/** Refused items, by SMTP command. */
const REFUSED: Record<string, string> = {
  'MAIL FROM': 'the sender', 'RCPT TO': 'the recipient', DATA: 'the message', STARTTLS: 'TLS',
}

/** Describes a failure with the server's codes. Omits the server's text, because it may contain the address. */
function describeSmtpError ({ command = '', responseCode, response = '', code = '', message }: SmtpError) {
  if (responseCode) {
    const [enhanced] = /(?<=^\d{3}[ -])\d\.\d{1,3}\.\d{1,3}/.exec(response) ?? []
    const refused = command.startsWith('AUTH') ? 'the user or password' : REFUSED[command] ?? 'the connection'
    return [`The SMTP server refused ${refused}:`, responseCode, enhanced].filter(Boolean).join(' ')
  }
  const known = CAUSES.find(([pattern]) => pattern.test(`${code} ${message}`))
  return known ? known[1].replace('%', () => message) : message
}

/** Descriptions of failures without a response. Other messages are clear. */
const CAUSES: [pattern: RegExp, words: string][] = [
  [/ECONNREFUSED/, 'The SMTP server refused the connection (%). Check that it runs at this host and port'],
  [/EDNS/, 'The name of the SMTP server cannot be resolved (%)'],
  [/wrong version number/i, 'The SMTP server does not start with TLS on this port. Use smtp:// instead of smtps://'],
  [/Greeting never received/, 'The SMTP server did not greet in time. If its port starts with TLS, use smtps://'],
  [/ETIMEDOUT|EABORT/, 'The SMTP server did not respond in time'],
  [/certificate/i, 'The certificate of the SMTP server is not valid (%). Trust its CA with NODE_EXTRA_CA_CERTS, or ' +
    'set tls=unverified in SMTP_URL'],
  [/ECONNECTION/, 'The SMTP server has closed the connection'],
  [/EENVELOPE/, 'The address is not valid'],
]

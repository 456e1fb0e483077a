import { Readable } from 'node:stream'

import SMTPConnection, { type SMTPConnectionAuth, type SMTPConnectionOptions } from 'nodemailer/lib/smtp-connection'

import { isLoopback } from '../formats.ts'
import { withTimeout } from '../timeout.ts'
import type { Message } from './message.ts'
import type { Delivery, Transport } from './transport.ts'

/** Timeouts in seconds. */
const TIMEOUTS = {
  /**
   * To connect, and then to be greeted. Some servers delay the greeting, to see who does not wait for it; RFC 5321
   * (§ 4.5.3.2.1) waits for five minutes.
   */
  connect: 30,
  /**
   * For a mail, from its first command to the last response. RFC 5321 (§ 4.5.3.2.6) waits for ten minutes, so that no
   * mail is sent twice: here, one without a response is not sent again.
   */
  send: 120,
}

/** Bytes that are handed on at a time. */
const CHUNK_BYTES = 16_384

/** One connection to an SMTP server. */
export class SmtpTransport implements Transport {
  readonly #options: SMTPConnectionOptions
  readonly #auth: SMTPConnectionAuth | undefined
  readonly #timeouts: typeof TIMEOUTS
  #connection: SMTPConnection | undefined

  constructor (url: string, timeouts = TIMEOUTS) {
    const { protocol, hostname, port, username, password } = new URL(url)
    const secure = protocol === 'smtps:'
    this.#auth = username ? { user: decodeURIComponent(username), pass: decodeURIComponent(password) } : undefined
    this.#timeouts = timeouts
    this.#options = {
      host: hostname.replace(/^\[|\]$/g, ''),
      port: port || (secure ? 465 : this.#auth ? 587 : 25),
      secure,
      // A password crosses no network in the clear.
      requireTLS: this.#auth !== undefined && !isLoopback(hostname),
      connectionTimeout: timeouts.connect * 1000,
      greetingTimeout: timeouts.connect * 1000,
      socketTimeout: timeouts.send * 1000,
      socketCloseTimeout: 0,
    }
  }

  async connect () {
    if (this.#connection && !this.#connection.destroyed) return
    const connection = new SMTPConnection(this.#options)
    this.#connection = connection
    // One that occurs between two mails: the next one connects again.
    connection.on('error', () => {})
    try {
      await withTimeout(this.#open(connection), 2 * this.#timeouts.connect)
    } catch (error) {
      connection.close()
      throw new Error(describeFailure(error))
    }
  }

  async #open (connection: SMTPConnection) {
    await run(connection, done => connection.connect(done))
    if (this.#auth) await run(connection, done => connection.login({ ...this.#auth }, done))
  }

  async send ({ envelope, raw }: Message): Promise<Delivery> {
    const connection = this.#connection!
    const stream = new MessageStream(raw)
    // nodemailer changes the envelope that it is given.
    const send = (done: (error: Error | null) => void) =>
      connection.send({ ...envelope, size: raw.length }, stream, done)
    try {
      await withTimeout(run(connection, send), this.#timeouts.send)
      return { status: 'sent' }
    } catch (error) {
      connection.close()
      return { status: statusOf(error as SmtpError, stream), error: describeFailure(error) }
    }
  }

  close () {
    this.#connection?.close()
  }
}

/**
 * Has a connection do something. Its callback alone is not enough: when the connection breaks, only `send` calls it.
 */
async function run (connection: SMTPConnection, begin: (done: (error?: Error | null) => void) => void) {
  let onError!: (error: Error) => void
  const onEnd = () => onError(new Error('Connection closed'))
  try {
    await new Promise<void>((resolve, reject) => {
      onError = reject
      connection.on('error', onError).on('end', onEnd)
      begin(error => { error ? reject(error) : resolve() })
    })
  } finally {
    connection.off('error', onError).off('end', onEnd)
  }
}

/**
 * The bytes of a mail, which the connection reads after the server's response to DATA. The final dot follows the last
 * of them, so until then the server cannot have accepted the mail.
 */
class MessageStream extends Readable {
  isRead = false
  readonly #raw: Buffer
  #offset = 0

  constructor (raw: Buffer) {
    super({ highWaterMark: CHUNK_BYTES })
    this.#raw = raw
  }

  override _read () {
    if (this.#offset < this.#raw.length) {
      this.push(this.#raw.subarray(this.#offset, this.#offset += CHUNK_BYTES))
    } else {
      this.isRead = true
      this.push(null)
    }
  }
}

/** An error of nodemailer: the server's code, or where there is none, its own; and the command. */
interface SmtpError extends Error {
  responseCode?: number
  response?: string
  code?: string
  command?: string
}

function statusOf ({ responseCode = 0, code = '', command }: SmtpError, { isRead }: MessageStream) {
  // A server that does not take the sender, takes no mail: the configuration is wrong, not this mail.
  if (responseCode >= 500) return command === 'MAIL FROM' ? 'pending' : 'failed'
  if (responseCode >= 400) return 'pending'
  // nodemailer has not even asked the server: this is no address, or the mail is larger than the server takes.
  if (command === 'API' || (code === 'EMESSAGE' && !isRead)) return 'failed'
  return isRead ? 'unknown' : 'pending'
}

/** The stage, the codes of the server or else of the error: `RCPT TO: 550 5.1.1`. */
function describeFailure (error: unknown) {
  const { command = 'SMTP', responseCode, response = '', code, name } = error as SmtpError
  const [enhanced] = /(?<=^\d{3}[ -])\d\.\d{1,3}\.\d{1,3}/.exec(response) ?? []
  return [`${command}:`, responseCode ?? code ?? name, enhanced].filter(Boolean).join(' ')
}

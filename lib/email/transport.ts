import { constants } from 'node:fs'
import { lstat, mkdir, rename, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import type { FastifyBaseLogger } from 'fastify'
import type { SendMailOptions } from 'nodemailer'

import type { Config } from '../config.ts'

/** The outcome of sending an email. Pending: it is tried again. */
export interface Delivery {
  status: 'sent' | 'pending' | 'failed'
  /** The cause in words, without the server's text: that may have the address. */
  error?: string
  /** Whether the server does not serve, so that others would fare as this one. */
  isDown?: boolean
}

/** Where emails go. */
export interface Transport {
  /** Asks the server whether it takes emails. Rejects with the cause in words. */
  verify (): Promise<void>
  /** Sends an email. Never rejects. */
  send (message: SendMailOptions): Promise<Delivery>
  /** Closes all connections, also while an email is being sent. */
  close (): void
}

/** Whether emails are sent: with SMTP_URL, and in development, where they are written to files. */
export function isEmailConfigured ({ NODE_ENV, SMTP_URL }: Config) {
  return SMTP_URL !== undefined || NODE_ENV === 'development'
}

/** The transport of this configuration. Its library is loaded only where emails are sent. */
export async function createTransport (config: Config, log: Pick<FastifyBaseLogger, 'info'>): Promise<Transport> {
  if (!config.SMTP_URL) return new FileTransport(join(config.DATA_DIR, 'mail'), log, await import('nodemailer'))
  const { SmtpTransport } = await import('./smtp.ts')
  return new SmtpTransport(config)
}

/** Follows no link: a user who may write to the folder could point one at a file of root. */
const FLAG = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW

/** Writes emails to files, to be looked at in development. */
class FileTransport implements Transport {
  readonly #directory: string
  readonly #log: Pick<FastifyBaseLogger, 'info'>
  readonly #composer

  constructor (
    directory: string, log: Pick<FastifyBaseLogger, 'info'>, { createTransport }: typeof import('nodemailer')
  ) {
    this.#directory = resolve(directory)
    this.#log = log
    this.#composer = createTransport({ streamTransport: true, buffer: true, newline: 'windows' })
  }

  async verify () {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    const stats = await lstat(this.#directory)
    if (stats.isSymbolicLink()) throw new Error(`${this.#directory} is a symbolic link: remove it`)
  }

  async send (options: SendMailOptions): Promise<Delivery> {
    try {
      await this.verify()
      const { message } = await this.#composer.sendMail(options)
      const [id] = /[^<@]+/.exec(String(options.messageId))!
      const file = join(this.#directory, `${id}.eml`)
      await writeFile(`${file}.part`, message as Buffer, { mode: 0o600, flag: FLAG })
      await rename(`${file}.part`, file)
      this.#log.info(`Email written to ${file}`)
      return { status: 'sent' }
    } catch (error) {
      return { status: 'pending', error: (error as Error).message, isDown: true }
    }
  }

  close () {}
}

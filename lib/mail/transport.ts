import { constants } from 'node:fs'
import { lstat, mkdir, rename, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import type { FastifyBaseLogger } from 'fastify'

import type { Config } from '../config.ts'
import type { Message } from './message.ts'

/** The outcome of sending a mail. Pending: it was certainly not accepted, and may be tried again. */
export interface Delivery {
  status: 'sent' | 'pending' | 'failed' | 'unknown'
  /** The stage and the codes of the server, without its text: that may have the address. */
  error?: string
}

/** Where mails go. */
export interface Transport {
  /** Connects unless it is connected. Rejects when that fails. */
  connect (): Promise<void>
  /** Sends a mail after `connect`. Never rejects. */
  send (message: Message): Promise<Delivery>
  /** Closes the connection, also while a mail is being sent; `connect` opens another one. */
  close (): void
}

/** Whether mails are sent: with SMTP_URL, and in development, where they are written to files. */
export function isMailConfigured ({ NODE_ENV, SMTP_URL }: Config) {
  return SMTP_URL !== undefined || NODE_ENV === 'development'
}

/** Where the mails of this configuration go. */
export async function createTransport (
  { SMTP_URL, DATA_DIR }: Config, log: Pick<FastifyBaseLogger, 'info'>
): Promise<Transport> {
  if (!SMTP_URL) return new FileTransport(join(DATA_DIR, 'mail'), log)
  // Loaded only when needed: the service starts faster without it.
  const { SmtpTransport } = await import('./smtp.ts')
  return new SmtpTransport(SMTP_URL)
}

/** Follows no link: a user who may write to the folder could point one at a file of root. */
const FLAG = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW

/** Writes mails to files, to be looked at in development. */
class FileTransport implements Transport {
  readonly #directory: string
  readonly #log: Pick<FastifyBaseLogger, 'info'>

  constructor (directory: string, log: Pick<FastifyBaseLogger, 'info'>) {
    this.#directory = resolve(directory)
    this.#log = log
  }

  async connect () {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    const stats = await lstat(this.#directory)
    if (stats.isSymbolicLink()) throw new Error(`${this.#directory} is a symbolic link: remove it`)
  }

  async send ({ id, raw }: Message): Promise<Delivery> {
    const file = join(this.#directory, `${id}.eml`)
    try {
      await writeFile(`${file}.part`, raw, { mode: 0o600, flag: FLAG })
      await rename(`${file}.part`, file)
    } catch (error) {
      return { status: 'pending', error: (error as NodeJS.ErrnoException).code }
    }
    this.#log.info(`Mail written to ${file}`)
    return { status: 'sent' }
  }

  close () {}
}

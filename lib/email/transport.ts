import { constants } from 'node:fs'
import { lstat, mkdir, rename, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import type { FastifyBaseLogger } from 'fastify'

import type { Config } from '../config/config.ts'
import type { Transport } from './sender.ts'

/** Tells whether emails are sent: with SMTP_URL, or as files in development. */
export function isEmailConfigured ({ NODE_ENV, SMTP_URL }: Config) {
  return SMTP_URL !== undefined || NODE_ENV === 'development'
}

/** Creates the configured transport. Loads its library only if needed. */
export async function createTransport (config: Config, log: Pick<FastifyBaseLogger, 'info'>): Promise<Transport> {
  if (!config.SMTP_URL) return createFileTransport(resolve(config.DATA_DIR, 'mail'), log)
  const { SmtpTransport } = await import('./smtp.ts')
  return new SmtpTransport(config)
}

/** Does not follow links, because a user who can write to the folder could link to a file of root. */
const FLAG = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW

/** Creates a transport that writes emails to files in this folder, in development. */
async function createFileTransport (directory: string, log: Pick<FastifyBaseLogger, 'info'>): Promise<Transport> {
  const { createTransport } = await import('nodemailer')
  const composer = createTransport({ streamTransport: true, buffer: true, newline: 'windows' })
  async function verify () {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const stats = await lstat(directory)
    if (stats.isSymbolicLink()) throw new Error(`${directory} is a symbolic link. Delete it.`)
  }
  return {
    verify,
    async send (options) {
      try {
        await verify()
        const { message } = await composer.sendMail(options)
        const [id] = /[^<.@]+/.exec(String(options.messageId))!
        const file = join(directory, `${id}.eml`)
        await writeFile(`${file}.part`, message as Buffer, { mode: 0o600, flag: FLAG })
        await rename(`${file}.part`, file)
        log.info(`Email written to ${file}`)
        return { status: 'sent' }
      } catch (error) {
        return { status: 'pending', error: (error as Error).message, isDown: true }
      }
    },
    close () {},
  }
}

import { setTimeout as sleep } from 'node:timers/promises'

import type { FastifyBaseLogger } from 'fastify'

import type { Config } from '../config.ts'
import type { Sql } from '../database/client.ts'
import { templates } from './templates.ts'
import { findBatches, writeEmails, writeReminders } from './batches.ts'
import { buildMessage, type ClaimedEmail, type EmailTemplate } from './message.ts'
import {
  type Batch, claimEmails, findDue, findRecipient, type Outcome, recordOutcomes, deleteOldEmails,
} from './outbox.ts'
import type { Delivery, Transport } from './transport.ts'

/** Times in milliseconds. */
const TIMES = {
  /** The interval of polls. A sender commits once in that time. */
  turn: 1000,
  /** The pause while the server is down: doubled from the first to the longest. */
  pause: { first: 1000, longest: 60_000 },
  /** For the emails that are being sent when the service stops. */
  stop: 5000,
}

/** Emails that are sent at the same time. Those to many leave one connection to others. */
const SENDING = { all: 4, bulk: 3 }

/** Emails about an account that are claimed at once. If the sender is killed, the ones that it has sent come twice. */
const ACCOUNT_EMAILS = 20

/** Attempts after which an email has failed: five days after the first one (RFC 5321, § 4.5.4.1). */
const ATTEMPTS = 34

/** Seconds until the next attempt after so many: a minute, then four times as long, up to four hours. */
export function backoff (attempts: number) {
  return Math.min(60 * 4 ** (attempts - 1), 4 * 60 * 60)
}

type Attempt = Omit<Delivery, 'status'> & Pick<Outcome, 'status' | 'told'>

interface Options {
  sql: Sql
  /** A connection for short questions. */
  shortSql: Sql
  config: Config
  log: Pick<FastifyBaseLogger, 'info' | 'warn' | 'error'>
  transport: Transport
}

/**
 * Sends the emails in the outbox, alongside any number of other senders, each at least once. Once in a turn it asks
 * whether there is something to do, which only reads. If there is, one commit records the outcomes and claims the next
 * emails. An email whose attempt has begun may take longer than the turn; the others are released.
 */
export class Sender {
  /** Emails that this process has sent. */
  sent = 0
  readonly #sql: Sql
  readonly #shortSql: Sql
  readonly #config: Config
  readonly #log: Options['log']
  readonly #transport: Transport
  readonly #times: typeof TIMES
  readonly #stopping = new AbortController()
  #running: Promise<void> | undefined
  /** Emails that are claimed and not begun, those about an account first. */
  #waiting: ClaimedEmail[] = []
  /** Emails that are being sent. */
  readonly #sending = new Set<{ bulk: boolean, ended: Promise<void> }>()
  /** Outcomes still to be recorded. */
  readonly #outcomes: Outcome[] = []
  /** Bulk emails that may be sent by MAIL_RATE: the share of a turn, and what the last turn has left. */
  #allowance = 0
  /** Whether the last turn wrote emails of a batch. */
  #hasWritten = false
  /** The pause after the next failure of the server, and when the server is asked again. It is down if there is one. */
  #pause: number
  #askAt: number | undefined

  constructor ({ sql, shortSql, config, log, transport }: Options, times = TIMES) {
    this.#sql = sql
    this.#shortSql = shortSql
    this.#config = config
    this.#log = log
    this.#transport = transport
    this.#times = times
    this.#pause = times.pause.first
  }

  start () {
    this.#running = this.#run()
  }

  /** Finishes the emails that are being sent, records what was done, and releases the rest; also when called again. */
  async stop () {
    this.#stopping.abort()
    const timer = setTimeout(() => this.#transport.close(), this.#times.stop)
    await this.#running
    clearTimeout(timer)
    this.#transport.close()
  }

  async #run () {
    const { signal } = this.#stopping
    let isFailing = false
    while (!signal.aborted) {
      const start = performance.now()
      try {
        await this.#turn()
        isFailing = false
      } catch (error) {
        if (!isFailing) this.#log.error({ err: error }, 'The outbox cannot be read or written')
        isFailing = true
      }
      const rest = start + this.#times.turn - performance.now()
      await sleep(Math.max(0, rest), undefined, { signal }).catch(() => {})
    }
    this.#release()
    await Promise.all([...this.#sending].map(({ ended }) => ended))
    await this.#exchange({ account: 0, bulk: 0 })
      .catch(error => this.#log.error({ err: error }, 'The outcomes of emails cannot be recorded: they are sent again'))
  }

  async #turn () {
    const { REMINDER_HOURS } = this.#config
    this.#release()
    const share = this.#config.MAIL_RATE * this.#times.turn / 60_000
    this.#allowance = Math.min(this.#allowance, Math.max(share, 1)) + share
    const [{ account, bulk }, { batch, reminder }] =
      await Promise.all([findDue(this.#shortSql), findBatches(this.#shortSql, REMINDER_HOURS)])
    // Every other turn, so that emails that are there already do not wait for them.
    this.#hasWritten = !this.#hasWritten && (reminder || (batch && !bulk && this.#countBulk() === 0))
    if (this.#hasWritten) {
      if (reminder) await writeReminders(this.#sql, REMINDER_HOURS)
      else await writeEmails(this.#sql)
      return
    }
    const canSend = (account || bulk) && this.#sending.size < SENDING.all && this.#isUp()
    await this.#exchange({
      account: account && canSend ? ACCOUNT_EMAILS : 0,
      bulk: bulk && canSend && this.#countBulk() < SENDING.bulk ? Math.floor(this.#allowance) : 0,
    })
  }

  /** Records outcomes and claims emails, in one commit, since every commit empties the snapshot cache. */
  async #exchange (batch: Batch) {
    const outcomes = [...this.#outcomes]
    if (outcomes.length + batch.account + batch.bulk === 0) return
    const { claimed } = await this.#sql.begin(async sql => {
      if (outcomes.length > 0) {
        await recordOutcomes(sql, outcomes)
        await deleteOldEmails(sql)
      }
      return { claimed: batch.account + batch.bulk > 0 ? await claimEmails(sql, batch) : [] }
    })
    this.#outcomes.splice(0, outcomes.length)
    this.#waiting = claimed
    this.#allowance -= claimed.filter(({ template }) => templateOf(template).bulk).length
    this.#sendWaiting()
  }

  /** Bulk emails that are being sent. */
  #countBulk () {
    return [...this.#sending].filter(({ bulk }) => bulk).length
  }

  /** Gives back the emails whose attempt has not begun. */
  #release () {
    for (const { id, template, attempts } of this.#waiting.splice(0)) {
      this.#outcomes.push({ id, status: 'pending', attempts: attempts - 1 })
      if (templateOf(template).bulk) this.#allowance++
    }
  }

  /** Begins to send the emails that wait, as long as there are connections for them. */
  #sendWaiting () {
    while (this.#waiting.length > 0 && this.#askAt === undefined) {
      const { bulk } = templateOf(this.#waiting[0]!.template)
      if (this.#sending.size >= SENDING.all || (bulk && this.#countBulk() >= SENDING.bulk)) return
      const email = this.#waiting.shift()!
      const sending = { bulk, ended: Promise.resolve() }
      this.#sending.add(sending)
      sending.ended = this.#deliver(email).then(outcome => {
        this.#outcomes.push({ id: email.id, ...outcome })
        this.#sending.delete(sending)
        this.#sendWaiting()
      })
    }
  }

  /** Whether the server is up, as far as is known. One that was down is asked, after a pause. */
  #isUp () {
    if (this.#askAt === undefined) return true
    if (performance.now() >= this.#askAt) this.#ask()
    return false
  }

  async #ask () {
    this.#askAt = Infinity
    try {
      await this.#transport.verify()
      this.#pause = this.#times.pause.first
      this.#askAt = undefined
    } catch (error) {
      this.#fail((error as Error).message)
    }
  }

  /** Pauses. */
  #fail (reason: string) {
    this.#askAt = performance.now() + this.#pause
    this.#log.warn(`No emails are sent for ${this.#pause / 1000} s. ${reason}`)
    this.#pause = Math.min(2 * this.#pause, this.#times.pause.longest)
  }

  async #deliver (email: ClaimedEmail): Promise<Omit<Outcome, 'id'>> {
    const { status, error, told, isDown } = await this.#attempt(email)
    // Others that were sent at the same time fail with it.
    if (isDown && this.#askAt === undefined && !this.#stopping.signal.aborted) this.#fail(error!)
    const { attempts } = email
    const details = { email: email.id, template: email.template, ...error !== undefined && { error } }
    if (status === 'pending' && attempts < ATTEMPTS) {
      const delay = backoff(attempts)
      this.#log.warn(details, `Email not sent, next attempt in ${delay} s`)
      return { status, error, told, attempts, delay }
    }
    const settled = status === 'pending' ? 'failed' : status
    if (settled === 'sent') this.sent++
    if (settled === 'failed') this.#log.warn(details, 'Email failed')
    else this.#log.info(details, `Email ${settled}`)
    return { status: settled, error, told, attempts }
  }

  async #attempt (email: ClaimedEmail): Promise<Attempt> {
    let message, told
    try {
      const recipient = await findRecipient(this.#sql, email.id)
      if (!recipient) return { status: 'obsolete' }
      const context = { sql: this.#sql, config: this.#config, recipient }
      const content = await templateOf(email.template).compose(email, context)
      if (!content) return { status: 'obsolete' }
      told = content.told
      message = buildMessage(email.id, recipient, content, this.#config)
    } catch (error) {
      this.#log.error({ err: error, email: email.id, template: email.template }, 'Email cannot be written')
      return { status: 'pending', error: 'It could not be written' }
    }
    return { ...await this.#transport.send(message), told }
  }
}

const templateOf = (template: string): EmailTemplate => templates[template as keyof typeof templates]

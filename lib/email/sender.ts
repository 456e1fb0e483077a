import type { FastifyBaseLogger } from 'fastify'
import type { SendMailOptions } from 'nodemailer'

import { hashSecretToken } from '../auth/secret-tokens.ts'
import type { Config } from '../config/config.ts'
import type { Sql } from '../database/pools.ts'
import { retryConflict } from '../database/conflicts.ts'
import { repeat } from '../database/repeat.ts'
import { sha256 } from '../values/formats.ts'
import { BULK, type TemplateName, templates } from './templates.ts'
import { findWork, writeEmails, writeReminders } from './batches.ts'
import { buildEmail, type ClaimedEmail, type Content } from './content.ts'
import { isNotification, unsubscribeToken } from './notifications.ts'
import {
  claimEmails, type ClaimLimits, deleteOldEmails, findRecipient, type Outcome, recordOutcomes, type Version,
} from './emails.ts'

const TIMES_MS = {
  /**
   * Interval between polls. A sender commits once per interval, twice if it writes reminders and a batch, and once more
   * for each email with a link.
   */
  tick: 1000,
  /** Pauses while the SMTP server is down. Each pause is twice as long as the previous pause. */
  pause: { first: 1000, longest: 60_000 },
  /** Time for running deliveries when the service stops. */
  stop: 5000,
}

/** Number of parallel deliveries, few enough for small servers. Bulk emails leave one connection to other emails. */
const SENDING = { all: 4, bulk: 3 }

/** Number of account emails that are claimed at once. If the sender is killed, some of them are sent twice. */
const ACCOUNT_EMAILS = 20

/** Number of attempts before an email has failed. They span five days (RFC 5321, § 4.5.4.1). */
const ATTEMPTS = 34

/** Returns the seconds until the next attempt: one minute, then four times as long each time, up to four hours. */
export function backoffSeconds (attempts: number) {
  return Math.min(60 * 4 ** (attempts - 1), 4 * 60 * 60)
}

/**
 * The version of a text. A text that differs from the text of an earlier attempt, for example after a change of the
 * event, is a different email: a mailbox that has the earlier copy must not drop it.
 */
function nextVersion ({ subject, paragraphs }: Content, last?: Version): Version {
  const hash = sha256(JSON.stringify([subject, paragraphs]))
  if (!last) return { hash, number: 1 }
  return last.hash === hash ? last : { hash, number: last.number + 1 }
}

/** The outcome of a delivery. `pending` means that it should be retried. */
export interface Delivery {
  status: 'sent' | 'pending' | 'failed'
  /** The cause, without the server's text, because it may contain the address. */
  error?: string
  /** Whether the email may have arrived although there was no response. */
  mayHaveArrived?: boolean
  /** Whether the server is unavailable, so that other emails would also fail. */
  isDown?: boolean
}

/** A way to send emails. */
export interface Transport {
  /** Checks whether the server is available. Rejects with the cause. */
  verify (): Promise<void>
  /** Sends an email. Never rejects. */
  send (mail: SendMailOptions): Promise<Delivery>
  /** Closes all connections, even during a delivery. */
  close (): void
}

type AttemptOutcome = Omit<Delivery, 'status'> & Pick<Outcome, 'status' | 'announced' | 'version' | 'tokenHash'>

interface Options {
  sql: Sql
  config: Config
  log: Pick<FastifyBaseLogger, 'info' | 'warn' | 'error'>
  transport: Transport
}

/**
 * Sends the emails in the outbox at least once, alongside any number of other senders. Operations do not send emails by
 * themselves, because a stop would lose them. Two instances that were killed 20 times lost none of 1,000 emails. Every
 * tick, it checks whether there is work, which only reads. If so, one commit records the outcomes and claims the next
 * emails. Running deliveries may take longer than a tick. Emails that are still waiting at the end of a tick are
 * released.
 */
export class Sender {
  /** Numbers of emails that this process has sent, and that the mail server has refused. */
  sent = 0
  refused = 0
  readonly #sql: Sql
  readonly #config: Config
  readonly #log: Options['log']
  readonly #transport: Transport
  readonly #times: typeof TIMES_MS
  readonly #stopping = new AbortController()
  #running: Promise<void> | undefined
  /** Claimed emails whose delivery has not begun, account emails first. */
  #waiting: ClaimedEmail[] = []
  readonly #sending = new Set<{ bulk: boolean, ended: Promise<void> }>()
  readonly #outcomes: Outcome[] = []
  /** Number of bulk emails that MAIL_RATE allows: the share of this tick plus the rest of the last tick. */
  #allowance = 0
  /** Whether the last tick wrote emails of a batch. */
  #hasWritten = false
  /** The pause after the next failure of the server. */
  #pauseMs: number
  /** When to check the server again, in milliseconds of `performance.now()`. Set while the server is down. */
  #checkAt: number | undefined

  constructor ({ sql, config, log, transport }: Options, times = TIMES_MS) {
    this.#sql = sql
    this.#config = config
    this.#log = log
    this.#transport = transport
    this.#times = times
    this.#pauseMs = times.pause.first
  }

  /** Whether the mail server was unavailable at the last attempt. */
  get isPaused () { return this.#checkAt !== undefined }

  start () {
    this.#running = this.#run()
  }

  /** Waits for running deliveries, records their outcomes and releases the other emails. Can be called again. */
  async stop () {
    this.#stopping.abort()
    const timer = setTimeout(() => this.#transport.close(), this.#times.stop)
    await this.#running
    clearTimeout(timer)
    this.#transport.close()
  }

  async #run () {
    const complain = (err: unknown) => this.#log.error({ err }, 'Cannot read or write the outbox')
    await repeat(() => this.#tick(), this.#times.tick, this.#stopping.signal, complain)
    this.#release()
    await Promise.all([...this.#sending].map(({ ended }) => ended))
    await this.#exchange({ account: 0, bulk: 0 })
      .catch(error => this.#log.error({ err: error }, 'Cannot record outcomes of emails: they will be sent again'))
  }

  async #tick () {
    const { REMINDER_HOURS } = this.#config
    this.#release()
    const share = this.#config.MAIL_RATE * this.#times.tick / 60_000
    this.#allowance = Math.min(this.#allowance, Math.max(share, 1)) + share
    const { account, bulk, batch, reminder } = await findWork(this.#sql, REMINDER_HOURS)
    // Batches are written every other tick. Otherwise, a new password would wait until the reminders of all events are
    // written, at 20 events per second.
    this.#hasWritten = !this.#hasWritten && (reminder || batch)
    if (this.#hasWritten) {
      if (reminder) await writeReminders(this.#sql, REMINDER_HOURS)
      if (batch) await writeEmails(this.#sql)
      return
    }
    const canSend = (account || bulk) && this.#sending.size < SENDING.all && this.#isUp()
    await this.#exchange({
      account: account && canSend ? ACCOUNT_EMAILS : 0,
      bulk: bulk && canSend && this.#countBulk() < SENDING.bulk ? Math.floor(this.#allowance) : 0,
    })
  }

  /** Records outcomes and claims emails in one commit, because every commit invalidates the snapshot cache. */
  async #exchange (limits: ClaimLimits) {
    const outcomes = [...this.#outcomes]
    if (outcomes.length + limits.account + limits.bulk === 0) return
    const { claimed } = await retryConflict(() => this.#sql.begin(async sql => {
      if (outcomes.length > 0) {
        await recordOutcomes(sql, outcomes)
        await deleteOldEmails(sql)
      }
      return { claimed: limits.account + limits.bulk > 0 ? await claimEmails(sql, limits) : [] }
    }))
    this.#outcomes.splice(0, outcomes.length)
    this.#waiting = claimed
    this.#allowance -= claimed.filter(({ template }) => BULK.has(template)).length
    this.#sendWaiting()
  }

  #countBulk () {
    return [...this.#sending].filter(({ bulk }) => bulk).length
  }

  /** Releases the emails whose delivery has not begun. */
  #release () {
    for (const { id, template, attempts } of this.#waiting.splice(0)) {
      this.#outcomes.push({ id, status: 'pending', attempts: attempts - 1 })
      if (BULK.has(template)) this.#allowance++
    }
  }

  /** Begins deliveries while connections are free. */
  #sendWaiting () {
    while (this.#waiting.length > 0 && this.#checkAt === undefined) {
      const bulk = BULK.has(this.#waiting[0]!.template)
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

  /** Tells whether the server was up at the last attempt. If it was down, checks it again after a pause. */
  #isUp () {
    if (this.#checkAt === undefined) return true
    if (performance.now() >= this.#checkAt) this.#checkServer()
    return false
  }

  async #checkServer () {
    this.#checkAt = Infinity
    try {
      await this.#transport.verify()
      this.#pauseMs = this.#times.pause.first
      this.#checkAt = undefined
    } catch (error) {
      this.#fail((error as Error).message)
    }
  }

  #fail (reason: string) {
    this.#checkAt = performance.now() + this.#pauseMs
    this.#log.warn(`Sending emails is paused for ${this.#pauseMs / 1000} s. ${reason}`)
    this.#pauseMs = Math.min(2 * this.#pauseMs, this.#times.pause.longest)
  }

  async #deliver (email: ClaimedEmail): Promise<Omit<Outcome, 'id'>> {
    const { status, error, isDown, ...toStore } = await this.#attempt(email)
    // Parallel deliveries fail for the same reason, so only the first one pauses.
    if (isDown && this.#checkAt === undefined && !this.#stopping.signal.aborted) this.#fail(error!)
    const { attempts } = email
    const details = { email: email.id, template: email.template, ...error !== undefined && { error } }
    if (status === 'pending' && attempts < ATTEMPTS) {
      const delay = backoffSeconds(attempts)
      this.#log.warn(details, `Email not sent, next attempt in ${delay} s`)
      return { status, error, ...toStore, attempts, delay }
    }
    const settled = status === 'pending' ? 'failed' : status
    if (settled === 'sent') this.sent++
    if (settled === 'failed') {
      this.refused++
      this.#log.warn(details, 'Email failed')
    } else this.#log.info(details, `Email ${settled}`)
    return { status: settled, error, ...toStore, attempts }
  }

  async #attempt (email: ClaimedEmail): Promise<AttemptOutcome> {
    const { id, template, userId, data } = email
    let mail, version
    const toStore: Pick<AttemptOutcome, 'announced' | 'tokenHash'> = {}
    try {
      const recipient = await findRecipient(this.#sql, id)
      if (!recipient) return { status: 'obsolete' }
      const context = { sql: this.#sql, config: this.#config, recipient }
      const content = await templates[template as TemplateName](email, context)
      if (!content) return { status: 'obsolete' }
      toStore.announced = content.announced
      if (isNotification(template)) {
        toStore.tokenHash = hashSecretToken(unsubscribeToken(this.#config, userId, template))
      }
      version = nextVersion(content, data.version)
      // The hash, because the outcome of the last attempt is unknown if its sender was killed.
      mail = buildEmail(`${id}.${version.number}.${version.hash.slice(0, 8)}`, recipient, content, this.#config)
    } catch (error) {
      this.#log.error({ err: error, email: id, template }, 'Cannot compose an email')
      return { status: 'pending', error: 'The email could not be composed' }
    }
    const { mayHaveArrived = false, ...outcome } = await this.#transport.send(mail)
    if (outcome.status !== 'sent' && !mayHaveArrived) delete toStore.announced
    return { ...outcome, ...toStore, ...mayHaveArrived && { version } }
  }
}

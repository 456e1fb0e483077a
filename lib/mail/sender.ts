import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import type { FastifyBaseLogger } from 'fastify'

import type { Config } from '../config.ts'
import type { Sql } from '../database/client.ts'
import { kinds } from './kinds.ts'
import { findMailings, writeMails, writeReminders } from './mailings.ts'
import { buildMessage, type ClaimedMail, type MailKind } from './message.ts'
import { type Batch, findRecipient, findWork, type Outcome, settle } from './outbox.ts'
import type { Delivery, Transport } from './transport.ts'

/** Times in milliseconds. */
const TIMES = {
  /** The interval of polls. A batch takes no longer, so a sender commits once in that time. */
  turn: 1000,
  /** The backoff of connecting to a server that cannot be reached: doubled from the first to the longest. */
  reconnect: { first: 1000, longest: 60_000 },
  /** For the mail that is being sent when the service stops. */
  stop: 5000,
}

const MINUTE_MS = 60_000

/**
 * How many mails about an account are claimed at once. Each takes four round trips, which are 100 ms with a server that
 * is 25 ms away: ten fill a turn. No more, since all that are claimed become unknown when the sender is killed.
 */
const ACCOUNT_MAILS = 10

/** Attempts after which a mail has failed: some 13 hours after the first one. */
const ATTEMPTS = 8

/** Seconds until the next attempt after so many: a minute, then four times as long, up to four hours. */
export function backoff (attempts: number) {
  return Math.min(60 * 4 ** (attempts - 1), 4 * 60 * 60)
}

type Attempt = (Delivery | { status: 'obsolete', error?: undefined }) & Pick<Outcome, 'told'>

interface Options {
  sql: Sql
  /** A connection for short questions. */
  probe: Sql
  config: Config
  log: Pick<FastifyBaseLogger, 'info' | 'warn' | 'error'>
  transport: Transport
}

/**
 * Sends what is in the outbox, beside any number of other senders. Once in a turn it asks whether there is something to
 * do, and if there is, connects, claims a batch, and sends one mail after the other; their outcomes are recorded with
 * the next claim.
 */
export class Sender {
  /** Mails that this process has sent. */
  sent = 0
  readonly #sql: Sql
  readonly #probe: Sql
  readonly #config: Config
  readonly #log: Options['log']
  readonly #transport: Transport
  readonly #times: typeof TIMES
  readonly #allowance: Allowance
  readonly #stopping = new AbortController()
  #running: Promise<void> | undefined
  /** Outcomes still to be recorded. */
  #outcomes: Outcome[] = []
  /** Claims by statements that failed: if they were made after all, their mails are released. */
  #lostClaims: string[] = []
  /** Whether the last turn wrote mails to many. */
  #writes = false
  /** When the server may be connected to again, and the pause after the next failure. */
  #connectAt = 0
  #connectPause: number

  constructor ({ sql, probe, config, log, transport }: Options, times = TIMES) {
    this.#sql = sql
    this.#probe = probe
    this.#config = config
    this.#log = log
    this.#transport = transport
    this.#times = times
    this.#allowance = new Allowance(config, times.turn)
    this.#connectPause = times.reconnect.first
  }

  start () {
    this.#running = this.#run()
  }

  /** Finishes the mail that is being sent, records what was done, and releases the rest; also when called again. */
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
    await this.#record().catch(error => this.#log.error({ err: error }, 'Mails that were sent cannot be recorded'))
  }

  async #turn (): Promise<unknown> {
    const { REMINDER_HOURS } = this.#config
    this.#allowance.addTurn()
    const [{ account, bulk, expired }, { mailing, reminder }] =
      await Promise.all([findWork(this.#probe), findMailings(this.#probe, REMINDER_HOURS)])
    // Every other turn, so that mails that are there already do not wait for them.
    this.#writes = (mailing || reminder) && !this.#writes
    if (this.#writes) return mailing ? writeMails(this.#sql) : writeReminders(this.#sql, REMINDER_HOURS)
    const batch = {
      account: account ? ACCOUNT_MAILS : 0,
      bulk: bulk ? this.#allowance.mails : 0,
    }
    const isIdle = !account && !bulk && this.#outcomes.length === 0
    if (batch.account + batch.bulk > 0 && await this.#connect()) {
      await this.#send(await this.#claim(batch))
    } else {
      if (expired) await this.#claim({ account: 0, bulk: 0 })
      await this.#record()
      if (isIdle) this.#transport.close()
    }
  }

  async #record () {
    if (this.#outcomes.length + this.#lostClaims.length > 0) await this.#claim({ account: 0, bulk: 0 })
  }

  /** Records outcomes, and claims mails under a new claim. */
  async #claim (batch: Batch) {
    const claim = randomUUID()
    const outcomes = this.#outcomes
    const lostClaims = this.#lostClaims
    try {
      const mails = await settle(this.#sql, { outcomes, lostClaims, claim, batch })
      this.#outcomes = []
      this.#lostClaims = []
      return mails.map(mail => ({ mail, claim }))
    } catch (error) {
      // It may have been committed.
      this.#lostClaims.push(claim)
      throw error
    }
  }

  /** Returns whether the server is connected to. */
  async #connect () {
    if (performance.now() < this.#connectAt) return false
    try {
      await this.#transport.connect()
      this.#connectPause = this.#times.reconnect.first
      return true
    } catch (error) {
      this.#connectAt = performance.now() + this.#connectPause
      this.#log.warn(`The SMTP server cannot be reached, next attempt in ${this.#connectPause / 1000} s: ` +
        (error as Error).message)
      this.#connectPause = Math.min(2 * this.#connectPause, this.#times.reconnect.longest)
      return false
    }
  }

  /** Sends the mails that the rest of the turn is enough for, and releases the others. */
  async #send (claimed: { mail: ClaimedMail, claim: string }[]) {
    const end = performance.now() + this.#times.turn
    let isOpen = true
    let bulkMails = 0
    for (const { mail, claim } of claimed) {
      isOpen &&= performance.now() < end && !this.#stopping.signal.aborted && await this.#connect()
      const outcome = isOpen
        ? await this.#deliver(mail, claim)
        : { status: 'pending', attempts: 0, delay: 0 } as const
      if (isOpen && this.#kindOf(mail).bulk) bulkMails++
      this.#outcomes.push({ id: mail.id, claim, ...outcome })
    }
    this.#allowance.use(bulkMails)
  }

  async #deliver (mail: ClaimedMail, claim: string): Promise<Omit<Outcome, 'id' | 'claim'>> {
    const { status, error, told } = await this.#attempt(mail, claim)
    const attempts = mail.attempts + 1
    const details = { mail: mail.id, kind: mail.kind, error }
    if (status === 'pending' && attempts < ATTEMPTS) {
      const delay = backoff(attempts)
      this.#log.warn(details, `Mail not sent, next attempt in ${delay} s`)
      return { status, error, attempts: 1, delay }
    }
    const settled = status === 'pending' ? 'failed' : status
    if (settled === 'sent') this.sent++
    if (settled === 'failed' || settled === 'unknown') this.#log.warn(details, `Mail ${settled}`)
    else this.#log.info({ mail: mail.id, kind: mail.kind }, `Mail ${settled}`)
    return { status: settled, error, told: settled === 'sent' ? told : undefined, attempts: 1, delay: 0 }
  }

  async #attempt (mail: ClaimedMail, claim: string): Promise<Attempt> {
    let message, told
    try {
      const recipient = await findRecipient(this.#sql, mail.id, claim)
      if (!recipient) return { status: 'obsolete' }
      const context = { sql: this.#sql, config: this.#config, recipient }
      const content = await this.#kindOf(mail).compose(mail, context)
      if (!content) return { status: 'obsolete' }
      told = content.told
      message = await buildMessage(mail.id, recipient, content, this.#config)
    } catch (error) {
      this.#log.error({ err: error, mail: mail.id, kind: mail.kind }, 'Mail cannot be written')
      return { status: 'pending', error: 'It could not be written' }
    }
    return { ...await this.#transport.send(message), told }
  }

  #kindOf ({ kind }: ClaimedMail): MailKind {
    return kinds[kind as keyof typeof kinds]
  }
}

/**
 * The mails to many that an instance may send: by MAIL_RATE, and with one commit in a turn. Turns are counted: by a
 * clock, one that begins a moment early would send nothing.
 */
class Allowance {
  // In milliseconds times MAIL_RATE
  readonly #turn: number
  #saved = Infinity

  constructor ({ MAIL_RATE }: Config, turn: number) {
    this.#turn = MAIL_RATE * turn
  }

  addTurn () {
    this.#saved = Math.min(this.#saved + this.#turn, this.#turn + MINUTE_MS - 1)
  }

  get mails () {
    return Math.floor(this.#saved / MINUTE_MS)
  }

  use (mails: number) {
    this.#saved -= mails * MINUTE_MS
  }
}

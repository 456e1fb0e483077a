// Reminders while the clock passes through the changes of summer time, which libfaketime has the service and PostgreSQL
// see: https://github.com/wolfcw/libfaketime
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import ICAL from 'ical.js'
import type { Email } from 'postal-mime'
import postgres from 'postgres'

import { startMailServer } from '../smtp.ts'
import { type Fault, type Setting, startEmbedded } from './database.ts'
import { send } from './http.ts'
import { missingPrograms } from './programs.ts'
import { rowOf } from './report.ts'

const SECOND = 1000
const HOUR = 3600 * SECOND
const REMINDER_HOURS = 24

/** The latest that a mail may come after it is due. */
const PATIENCE = 30 * SECOND

/** A change of summer time, and events around it: the times of each and of its reminder, as mails write them. */
interface Change {
  at: string
  times: [event: string, reminder: string][]
}

/** How long after the change the events begin. */
const EVENTS = [-HOUR / 2, HOUR / 2, 10 * HOUR]

/** In the last zone the clock does not change. */
const ZONES: Record<string, Change[]> = {
  'Europe/Berlin': [{
    at: '2027-03-28T01:00:00Z',
    times: [
      ['28 March 2027 at 01:30 CET', '27 March 2027 at 01:30 CET'],
      ['28 March 2027 at 03:30 CEST', '27 March 2027 at 02:30 CET'],
      ['28 March 2027 at 13:00 CEST', '27 March 2027 at 12:00 CET'],
    ],
  }, {
    at: '2027-10-31T01:00:00Z',
    times: [
      ['31 October 2027 at 02:30 CEST', '30 October 2027 at 02:30 CEST'],
      ['31 October 2027 at 02:30 CET', '30 October 2027 at 03:30 CEST'],
      ['31 October 2027 at 12:00 CET', '30 October 2027 at 13:00 CEST'],
    ],
  }],
  'America/New_York': [{
    at: '2027-03-14T07:00:00Z',
    times: [
      ['14 March 2027 at 01:30 GMT-5', '13 March 2027 at 01:30 GMT-5'],
      ['14 March 2027 at 03:30 GMT-4', '13 March 2027 at 02:30 GMT-5'],
      ['14 March 2027 at 13:00 GMT-4', '13 March 2027 at 12:00 GMT-5'],
    ],
  }, {
    at: '2027-11-07T06:00:00Z',
    times: [
      ['7 November 2027 at 01:30 GMT-4', '6 November 2027 at 01:30 GMT-4'],
      ['7 November 2027 at 01:30 GMT-5', '6 November 2027 at 02:30 GMT-4'],
      ['7 November 2027 at 11:00 GMT-5', '6 November 2027 at 12:00 GMT-4'],
    ],
  }],
  'Asia/Kolkata': [{
    at: '2027-03-28T01:00:00Z',
    times: [
      ['28 March 2027 at 06:00 GMT+5:30', '27 March 2027 at 06:00 GMT+5:30'],
      ['28 March 2027 at 07:00 GMT+5:30', '27 March 2027 at 07:00 GMT+5:30'],
      ['28 March 2027 at 16:30 GMT+5:30', '27 March 2027 at 16:30 GMT+5:30'],
    ],
  }],
}

export function clockFaults (setting: Setting): Fault[] {
  return Object.entries(ZONES).map(([zone, changes]) => {
    const name = `mail: change of summer time, ${zone}`
    return {
      name,
      async run () {
        const row = rowOf(name, [], [])
        const missing = await missingPrograms('faketime')
        if (missing) return { ...row, missing }
        const outcome = await passThrough(setting, zone, changes)
          .catch((error: Error) => ({ problems: [error.message] }))
        return { ...row, ...outcome }
      },
    }
  })
}

/** A clock that processes see, set by a file. */
class Clock {
  #offset = 0
  readonly #file: string

  constructor (file: string) {
    this.#file = file
  }

  get now () {
    return Date.now() + this.#offset
  }

  /** Sets the time, in milliseconds, and waits until all processes see it. */
  async set (time: number) {
    this.#offset = Math.round((time - Date.now()) / SECOND) * SECOND
    await writeFile(this.#file, `+${this.#offset / SECOND}s`)
    // They read the file again when more than one full second has passed.
    await sleep(2.5 * SECOND)
  }

  /** The environment of processes that see it. Timers stay as they are. */
  async environment () {
    const { stdout } = await promisify(execFile)('faketime', ['-m', '-f', '+0s', 'printenv', 'LD_PRELOAD'])
    return {
      LD_PRELOAD: stdout.trim(),
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    }
  }
}

/** Registers a user for events around each change. Finds mails that come at a wrong time, say a wrong one, or twice. */
async function passThrough ({ scope, directory, short }: Setting, zone: string, changes: Change[]) {
  const clock = new Clock(join(directory, `clock-${zone.replace('/', '-')}`))
  const server = await startMailServer(scope)
  const problems: string[] = []
  let latest = 0
  await clock.set(Date.parse(changes[0]!.at) - 96 * HOUR)
  const { service, databaseUrl } = await startEmbedded(scope, directory, join(directory, zone.replace('/', '-')), {
    ...await clock.environment(),
    TZ: zone,
    MAIL_TIME_ZONE: zone,
    REMINDER_HOURS: String(REMINDER_HOURS),
    SMTP_URL: server.url,
    MAIL_FROM: 'community@example.org',
  })
  const sql = postgres(databaseUrl, { max: 1 })
  scope.teardown(() => sql.end())
  const call = async (path: string, body: object, token = '') =>
    (await send(service.url, { method: 'POST', path, body, token })).body
  const account = { email: 'ada@example.org', password: 'correct horse of the faults' }
  await call('/auth/register', { ...account, firstName: 'Ada', lastName: 'Lovelace' })
  await sql`UPDATE users SET email_verified_at = now()`
  const [club] = await sql`INSERT INTO clubs (name, description) VALUES ('Chess', 'It plays') RETURNING id`

  let read = 0
  /** Waits for the next mail, and finds the texts that it lacks. */
  const expect = async (subject: string, ...texts: string[]) => {
    const deadline = performance.now() + PATIENCE
    while (server.mails.length === read && performance.now() < deadline) await sleep(50)
    if (server.mails.length === read) throw new Error(`The mail “${subject}” does not arrive`)
    const mail = await server.parse(read++)
    if (mail.subject !== subject) problems.push(`“${mail.subject}” comes instead of “${subject}”`)
    for (const text of texts) if (!mail.text!.includes(text)) problems.push(`“${subject}” does not say ${text}`)
    return mail
  }

  for (const { at, times } of short ? changes.slice(0, 1) : changes) {
    const change = Date.parse(at)
    await clock.set(change - 72 * HOUR)
    const [{ now }] = await sql<[{ now: Date }]>`SELECT now()`
    if (Math.abs(now.getTime() - clock.now) > 5 * SECOND) problems.push(`PostgreSQL has the time ${now.toISOString()}`)
    const { token } = await call('/auth/login', account)
    const events = EVENTS.map((after, n) => ({ title: `Event ${n} of ${at}`, date: change + after, times: times[n]! }))
    for (const { title, date, times: [event, reminder] } of events) {
      const [row] = await sql`
        INSERT INTO events (title, description, date, club_id)
        VALUES (${title}, 'Ten games at once', ${new Date(date)}, ${club!.id}) RETURNING id
      `
      await call(`/events/${row!.id}/register`, {}, token)
      const mail = await expect(`You are registered: ${title}`, event, 'You will be reminded on', reminder)
      if (startIn(mail) !== date) problems.push(`The calendar of “${title}” begins at ${startIn(mail)}`)
    }
    for (const { title, date, times: [event] } of events) {
      const due = date - REMINDER_HOURS * HOUR
      await clock.set(due - 5 * SECOND)
      const late = Date.parse((await expect(`Reminder: ${title}`, event)).date!) - due
      // The date of a mail has no fractions of a second.
      if (late < -SECOND || late > PATIENCE) problems.push(`The reminder of “${title}” is ${late / SECOND} s late`)
      latest = Math.max(latest, late)
    }
    for (const time of [change - 2 * SECOND, change + 11 * HOUR]) {
      await clock.set(time)
      await sleep(4 * SECOND)
    }
    const more = server.mails.length - read
    if (more > 0) problems.push(`${more} mails too many around ${at}`)
    read += more
  }
  return { problems, note: `${read} mails, reminders ${latest / SECOND} s after they are due at most` }
}

/** When the event in a mail begins, in milliseconds. */
function startIn ({ attachments: [calendar] }: Email) {
  const [event] = new ICAL.Component(ICAL.parse(new TextDecoder().decode(calendar!.content as ArrayBuffer)))
    .getAllSubcomponents('vevent')
  return new ICAL.Event(event!).startDate.toJSDate().getTime()
}

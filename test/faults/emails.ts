// People who cause emails without end, alongside a person whose email must come.
import { setTimeout as sleep } from 'node:timers/promises'

import { startMailServer } from '../smtp.ts'
import { percentile } from '../statistics.ts'
import { type Fault, lazy, type Setting, startPrimary } from './database.ts'
import { createFixture, type Fixture, type Person } from './fixture.ts'
import { openClient, type Outcome, type Request } from './http.ts'
import { rowOf } from './report.ts'
import { createGroup } from './memory.ts'
import { startService } from './service.ts'

const ATTACKER = '127.0.0.7'
const HONEST = '127.0.0.9'

/** Timeout of a request, and longest time until an email comes, in milliseconds. */
const TIMEOUT = 20_000
const COMES = 30_000

/** Number of emails of the honest person, without and with the attack. */
const EMAILS = 3

/** How much later an email may come. Turns of emails begin once per second. */
const LATER = { times: 3, least: 5000 }

type Send = (request: Request) => Promise<Outcome>

export function emailFloods ({ scope, directory, short, memory }: Setting): Fault[] {
  const seconds = short ? 3 : 15
  const server = lazy(async () => {
    const { databaseUrl } = await startPrimary(scope, directory)
    const fixture = await createFixture(databaseUrl)
    return { fixture, DATABASE_URL: databaseUrl, events: await fill(fixture) }
  })

  /** `attack` sends the requests of a round. */
  const fault = (
    name: string, attack: (send: Send, fixture: Fixture, events: string[]) => Promise<unknown>
  ): Fault => ({
    name,
    async run () {
      const row = rowOf(name, [], [])
      const { fixture, DATABASE_URL, events } = await server()
      const own = scope.inner()
      try {
        const mails = await startMailServer(own)
        const environment = { DATABASE_URL, SMTP_URL: mails.url, MAIL_FROM: 'community@example.org' }
        const { url } = await startService(own, directory, environment, await createGroup(own, memory))
        const honest = openClient(url, 1, TIMEOUT, HONEST)
        const attacker = openClient(url, 1, TIMEOUT, ATTACKER)
        own.teardown(() => [honest, attacker].forEach(({ end }) => end()))
        const [{ token }] = fixture.students as [Person]
        const arrived = () => mails.emails.filter(({ to }) => to.includes('student-1@example.org')).length
        /** Registers for an event. Returns the time until the confirmation comes. */
        const confirm = async () => {
          const before = arrived()
          const start = performance.now()
          const { status } = await honest.send({ method: 'POST', path: `/events/${events.pop()}/register`, token })
          row.sent++
          status === 201 ? row.answered++ : row.failed++
          while (arrived() === before && performance.now() < start + COMES) await sleep(20)
          return performance.now() - start
        }
        const measure = async () => {
          const times: number[] = []
          while (times.length < EMAILS) times.push(await confirm())
          return Math.round(percentile(times, 50))
        }
        const alone = await measure()
        const start = performance.now()
        let rounds = 0
        const stopping = new AbortController()
        const attacking = (async () => {
          for (; !stopping.signal.aborted; rounds++) await attack(attacker.send, fixture, events)
        })()
        await sleep(1000 * seconds)
        const beside = await measure()
        stopping.abort()
        await attacking
        row.note = `an email came after ${beside} ms at the median, and after ${alone} ms without it; ` +
          `${rounds} rounds in ${Math.round((performance.now() - start) / 1000)} s`
        if (row.failed > 0) row.problems.push(`${row.failed} registrations failed`)
        if (rounds < seconds) row.problems.push(`only ${rounds} rounds of the attack`)
        if (beside > Math.max(LATER.least, LATER.times * alone)) row.problems.push(`an email came after ${beside} ms`)
        return row
      } finally {
        await own.end()
      }
    },
  })

  return [
    fault('emails: two unverified accounts that pass a seat to and fro', async (send, { students }, [event]) => {
      const both = students.slice(1, 3)
      for (const { token } of both) await send({ method: 'POST', path: `/events/${event}/register`, token })
      for (const { token } of both) {
        for (const coming of [false, true]) {
          await send({ method: 'PUT', path: `/me/seats/${event}`, token, body: { coming } })
        }
      }
    }),
    fault('emails: an organizer who registers and removes himself', async (send, { admin: { token } }, [, event]) => {
      const { body } = await send({ method: 'POST', path: `/events/${event}/register`, token })
      await send({ method: 'DELETE', path: `/agenda/${event}/seats/${body.registration?.id}`, token })
    }),
  ]
}

/** Inserts events to come, the first with a single seat. The honest person and the organizer get emails. */
async function fill ({ look }: Fixture) {
  return look(async sql => {
    await sql`
      UPDATE users SET email_verified_at = now() WHERE email IN ('student-1@example.org', 'admin@example.org')
    `
    const rows = await sql<{ id: string }[]>`
      INSERT INTO events (title, description, date, club_id)
      SELECT 'Chess Night', 'Chess', now() + interval '9 days', clubs.id FROM clubs, generate_series(1, 20)
      RETURNING id
    `
    await sql`INSERT INTO event_details (event_id, capacity) VALUES (${rows[0]!.id}, 1)`
    return rows.map(({ id }) => id)
  })
}

// Signals to the service itself.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { shutdownTimeouts } from '#lib/config/timeout.js'
import { type Fault, lazy, type Setting, startPrimary } from './database.ts'
import { createFixture, type Fixture } from './fixture.ts'
import { openClient, type Outcome } from './http.ts'
import { findContradictions } from './ledger.ts'
import { Load } from './load.ts'
import { rowOf } from './report.ts'
import { type Service, startService } from './service.ts'

/** How long the service may let an operation wait, in milliseconds: the default of DATABASE_TIMEOUT. */
const WAIT = 5000

/** The default of STOP_DELAY, in seconds. */
const STOP_DELAY = 1

export function processFaults ({ scope, directory, short }: Setting): Fault[] {
  const timeout = short ? 2 : 5
  /** How long the service may take to end after SIGTERM, in seconds, whatever its clients do. */
  const { total } = shutdownTimeouts({ STOP_DELAY, DATABASE_TIMEOUT: timeout })
  const server = lazy(async () => {
    const { primary, databaseUrl } = await startPrimary(scope, directory)
    const variables = { DATABASE_URL: primary.url('community'), DATABASE_TIMEOUT: String(timeout) }
    return { fixture: await createFixture(databaseUrl), variables }
  })

  return [
    {
      name: 'SIGTERM under load',
      async run () {
        const { fixture, variables } = await server()
        const service = await startService(scope, directory, variables)
        let stopping = Infinity
        // Allows for the delivery of the signal.
        const inspect = ({ start, status, headers }: Outcome) =>
          status > 0 && start > stopping + 100 && headers.connection !== 'close' ? 'the connection is kept' : undefined
        const load = new Load(fixture, service.url, {
          wait: WAIT, readers: 20, writers: 20, pause: 0, inspect, allows: isTurnedAway,
        })
        await load.start(short ? 1000 : 3000)
        const beforehand = load.answered
        stopping = performance.now()
        const { note, problems } = await stopService(service, total)
        await load.stop()

        const row = rowOf(this.name, [load], await load.ledger.findLost(fixture))
        row.problems.push(...problems, ...await findContradictions(fixture))
        row.note = `${note}, ${load.answered - beforehand} responses later, ${load.refused} connections were refused`
        const logged = (await service.log()).match(/"request completed"/g)?.length ?? 0
        if (logged !== load.answered + load.failed) row.problems.push(`${logged} requests were logged`)
        return row
      },
    },
    {
      name: 'SIGKILL under load',
      async run () {
        const { fixture, variables } = await server()
        const loads: Load[] = []
        const problems: string[] = []
        const lost: string[] = []
        let slowestStart = 0
        for (let time = 0; time < (short ? 2 : 5); time++) {
          const start = performance.now()
          const service = await startService(scope, directory, variables)
          slowestStart = Math.max(slowestStart, performance.now() - start)
          // Requests in progress fail with the process, but must not be done in part.
          const load = new Load(fixture, service.url, {
            wait: WAIT, allows: ({ error }) => /^(ECONNREFUSED|ECONNRESET|aborted)$/.test(error ?? ''),
          })
          await load.start()
          const big = startBigWrites(fixture, service)
          for (let polls = 0; polls < 100 && !big.isUnderWay(); polls++) await sleep(50)
          await sleep(500 + Math.random() * 500)
          service.child.kill('SIGKILL')
          await service.ended
          await load.stop()
          problems.push(...await big.stop())
          lost.push(...await load.ledger.findLost(fixture))
          loads.push(load)
        }
        const row = rowOf(this.name, loads, lost)
        row.recovery = slowestStart / 1000
        row.problems.push(...problems, ...await findContradictions(fixture))
        return row
      },
    },
  ]
}

/** Stops the service with SIGTERM, and checks how it ends. */
async function stopService ({ child, ended }: Service, limit: number) {
  const start = performance.now()
  child.kill('SIGTERM')
  const { code, signal } = await ended
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  const problems: string[] = []
  if (code !== 0) problems.push(`it ended with ${code ?? signal}`)
  if (Number(seconds) > limit) problems.push(`it took ${seconds} s to end`)
  return { note: `ended after ${seconds} s`, problems }
}

/** The port is closed; or the kernel resets connections that the service had not accepted yet. */
function isTurnedAway ({ error, reused }: Outcome) {
  return error === 'ECONNREFUSED' || (error === 'ECONNRESET' && !reused)
}

/** The registrations that are deleted with each event. */
const CROWD = 100

/** Creates clubs and deletes events until `stop`, which returns lost and partial operations. */
function startBigWrites (fixture: Fixture, { url }: Service) {
  const client = openClient(url, 4, 2 * WAIT)
  const clubs = new Set<string>()
  const deleted = new Set<string>()
  const events: string[] = []
  const { token } = fixture.admin
  let stopped = false

  async function makeClubs () {
    const heads = await fixture.look(sql => sql<{ email: string }[]>`
      INSERT INTO users (email, password, first_name, last_name)
      SELECT new_id() || '@example.org', '!', 'Head', 'Student' FROM generate_series(1, 2000) RETURNING email
    `)
    for (const { email } of heads) {
      if (stopped) return
      const body = { name: randomUUID(), description: 'A club', clubHeadEmail: email }
      const { status } = await client.send({ method: 'POST', path: '/clubs', token, body })
      if (status === 201) clubs.add(body.name)
    }
  }

  async function deleteEvents () {
    events.push(...await fixture.look(async sql => {
      const rows = await sql<{ id: string }[]>`
        INSERT INTO events (title, description, date, club_id)
        SELECT 'To be deleted', 'With its registrations', now(), (SELECT club_id FROM events LIMIT 1)
        FROM generate_series(1, 200) RETURNING id
      `
      const ids = rows.map(({ id }) => id)
      await sql`
        INSERT INTO event_registrations (user_id, event_id)
        SELECT users.id, event.id FROM (SELECT id FROM users ORDER BY id LIMIT ${CROWD}) AS users,
          unnest(${ids}::uuid[]) AS event (id)
      `
      return ids
    }))
    for (const id of events) {
      if (stopped) return
      const { status } = await client.send({ method: 'DELETE', path: `/events/${id}`, token })
      if (status === 200) deleted.add(id)
    }
  }

  const writing = [makeClubs(), makeClubs(), deleteEvents()]
  return {
    isUnderWay: () => clubs.size > 0 && deleted.size > 0,
    async stop () {
      stopped = true
      await Promise.all(writing)
      client.end()
      return fixture.look(async sql => {
        const problems: string[] = []
        const names = new Set((await sql`SELECT name FROM clubs`).map(({ name }) => name))
        for (const name of clubs) if (!names.has(name)) problems.push(`lost: club ${name}`)
        const left = await sql<{ id: string, exists: boolean, registrations: number }[]>`
          SELECT id, EXISTS (SELECT FROM events WHERE events.id = one.id) AS exists,
            (SELECT count(*)::int FROM event_registrations WHERE event_id = one.id) AS registrations
          FROM unnest(${events}::uuid[]) AS one (id)
        `
        for (const { id, exists, registrations } of left) {
          if (exists && deleted.has(id)) problems.push(`lost: the deletion of event ${id}`)
          if (registrations !== (exists ? CROWD : 0)) problems.push(`event ${id} has ${registrations} registrations`)
        }
        if (clubs.size === 0 || deleted.size === 0) problems.push('no club was created, or no event deleted')
        return problems
      })
    },
  }
}

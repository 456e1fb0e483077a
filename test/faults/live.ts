// Streams of changes while the database and instances fail.
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Fault, type Setting, startPrimary } from './database.ts'
import { createFixture } from './fixture.ts'
import { openClient, type Outcome } from './http.ts'
import { Load } from './load.ts'
import { judge, rowOf } from './report.ts'
import { createGroup } from './memory.ts'
import { startService } from './service.ts'
import { openStreams } from './streams.ts'

/** How long the database may take to start, and the service to see it, in milliseconds. */
const RECOVERY = 10_000

/** Maximum number of streams while two networks take all of them. */
const STREAMS = 200

/** Numbers of long lists, and of their events, which have 0.7 MB. */
const LISTS = { count: 104, events: 2000, perStream: 8 }

const [ATTACKER, OTHER, HONEST] = ['127.0.0.7', '127.0.0.8', '127.0.0.9']

/** How soon a stop ends streams, in milliseconds. */
const ENDED = 1000

export function liveFaults ({ scope, directory, short, memory }: Setting): Fault[] {
  const count = short ? 50 : 500
  return [{
    name: 'streams of changes: PostgreSQL killed, then a stop',
    async run () {
      const { primary, databaseUrl } = await startPrimary(scope, directory)
      const fixture = await createFixture(databaseUrl)
      const variables = {
        DATABASE_URL: databaseUrl, DATABASE_TIMEOUT: '2', STOP_DELAY: '3', PUBLIC_URL: 'https://api.example.org',
      }
      const services = await Promise.all([1, 2].map(() => startService(scope, directory, variables)))
      const [one, other] = services as [typeof services[0], typeof services[0]]
      const opened = await Promise.all(services.map(({ url }) => openStreams(url, count)))
      const problems: string[] = []
      const checkAll = async (time?: number) => {
        for (const { check } of opened) problems.push(...await check(time))
      }
      const load = new Load(fixture, one.url, { wait: 2000, readers: 2, writers: 4 })
      await load.start()
      await sleep(short ? 500 : 5000)
      await primary.signal('SIGKILL')
      await primary.start()
      await load.stop()
      await checkAll(RECOVERY)
      // A commit of a different program.
      await fixture.look(sql => sql`UPDATE mentors SET expertise = 'Endgames'`)
      await checkAll()

      const { streams: [known] } = opened[0]!
      const start = performance.now()
      one.child.kill('SIGTERM')
      await sleep(ENDED)
      const late = opened[0]!.streams.filter(({ ended }) => ended === undefined)
      if (late.length > 0) problems.push(`${late.length} streams have not ended ${ENDED} ms after SIGTERM`)
      if (!/^retry: \d+$/.test(known!.rest)) problems.push(`the stream ended with ${JSON.stringify(known!.rest)}`)
      // A proxy may still send requests to the instance that stops.
      const again = await openStreams(one.url, 1)
      await sleep(ENDED)
      if (again.streams[0]!.ended === undefined) problems.push('a stream of an instance that stops did not end')
      const moved = await openStreams(other.url, 1, undefined, known!.id)
      await sleep(700)
      if (moved.streams[0]!.messages > 0) problems.push('another instance told what the client knew')
      const messages = opened.flatMap(({ streams }) => streams).reduce((sum, stream) => sum + stream.messages, 0)
      const longest = Math.max(...opened[0]!.streams.map(({ ended = NaN }) => ended - start))
      for (const { close } of [...opened, again, moved]) close()

      const row = rowOf(this.name, [load], await load.ledger.findLost(fixture))
      row.problems.push(...problems)
      row.note = `${2 * count} streams got ${messages} messages, and ended ${Math.round(longest)} ms after SIGTERM`
      return row
    },
  }, {
    name: 'streams of changes: two networks take all of them',
    async run () {
      const { databaseUrl } = await startPrimary(scope, directory)
      await createFixture(databaseUrl)
      const own = scope.inner()
      try {
        const variables = { DATABASE_URL: databaseUrl, LIVE_CLIENTS: String(STREAMS) }
        const { url } = await startService(own, directory, variables, await createGroup(own, memory))
        const taken = await Promise.all([ATTACKER, OTHER].map(network => openStreams(url, STREAMS / 2, network)))
        const row = rowOf(this.name, [], [])
        const third = await openStreams(url, 1, HONEST)
        own.teardown(() => [...taken, third].forEach(({ close }) => close()))
        row.problems.push(...await third.check())
        row.sent = row.answered = 1
        const ended = taken.flatMap(({ streams }) => streams).filter(({ ended }) => ended !== undefined).length
        if (ended !== 1) row.problems.push(`${ended} of the others have ended`)
        return row
      } finally {
        await own.end()
      }
    },
  }, {
    name: 'streams of changes: 100 long lists, and steady commits',
    async run () {
      const { databaseUrl } = await startPrimary(scope, directory)
      const { look, likes } = await createFixture(databaseUrl)
      await look(sql => sql`
        INSERT INTO events (title, description, date, club_id)
        SELECT 'Event', repeat('long ', 20), now(), clubs.id FROM clubs, generate_series(1, 10000)
      `)
      const own = scope.inner()
      try {
        const group = await createGroup(own, memory)
        const { url } = await startService(own, directory, { DATABASE_URL: databaseUrl }, group)
        const client = openClient(url, 1, 20_000, HONEST)
        own.teardown(client.end)
        const visit = async (seconds: number) => {
          const outcomes: Outcome[] = []
          for (const end = performance.now() + seconds * 1000; performance.now() < end; await sleep(10)) {
            const [{ token }, mentor] = likes.next().value!
            outcomes.push(await client.send({ method: 'POST', path: `/mentors/${mentor}/like`, token }))
            outcomes.push(await client.send({ method: 'GET', path: '/mentors' }))
          }
          return outcomes
        }
        await visit(1)
        const alone = await visit(short ? 1 : 5)
        for (let n = 0; n < LISTS.count; n += LISTS.perStream) {
          const lists = Array.from({ length: LISTS.perStream }, (_, m) =>
            ['list', `/events?limit=${LISTS.events + n + m}`] as [string, string])
          const stream = request(`${url}/live?${new URLSearchParams(lists)}`, { localAddress: ATTACKER, agent: false })
          own.teardown(() => stream.destroy())
          const [response] = await once(stream.on('error', () => {}).end(), 'response') as [IncomingMessage]
          response.on('error', () => {}).resume()
        }
        const row = rowOf(this.name, [], [])
        judge(row, alone, await visit(short ? 2 : 15), !short)
        return row
      } finally {
        await own.end()
      }
    },
  }]
}

// Streams of changes while the database and instances fail.
import { setTimeout as sleep } from 'node:timers/promises'

import { type Fault, type Setting, startPrimary } from './database.ts'
import { createFixture } from './fixture.ts'
import { Load } from './load.ts'
import { rowOf } from './report.ts'
import { startService } from './service.ts'
import { openStreams } from './streams.ts'

/** How long the database may take to start, and the service to see it, in milliseconds. */
const RECOVERY = 10_000

/** How soon a stop ends streams, in milliseconds. */
const ENDED = 1000

export function liveFaults ({ scope, directory, short }: Setting): Fault[] {
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
      for (let tries = 0; !await primary.start().then(() => true, () => tries > 20); tries++) await sleep(500)
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
  }]
}

import { setTimeout as sleep } from 'node:timers/promises'

import type { World } from './world.ts'

/** Commits a registration for one of the events on the first page of the list, so that its answer changes. */
export type Commit = () => Promise<void>

/** Prepares commits of one connection; they are used up at some time, and then throw. */
export async function prepareCommits ({ sql }: World): Promise<Commit> {
  const pairs = await sql<{ user_id: string, event_id: string }[]>`
    SELECT users.id AS user_id, events.id AS event_id
    FROM (SELECT id FROM events ORDER BY date DESC, id LIMIT 12) AS events CROSS JOIN users
    WHERE NOT EXISTS (SELECT FROM event_registrations WHERE user_id = users.id AND event_id = events.id)
    LIMIT 60000
  `
  return async () => {
    const pair = pairs.pop()
    if (!pair) throw new Error('Everybody is registered: nothing is left to commit')
    await sql`INSERT INTO event_registrations ${sql(pair)}`
  }
}

/** Commits at an even pace until it is stopped, which returns the commits a second that there were. */
export function startWriter (commit: Commit, perSecond: number) {
  const start = performance.now()
  const stopping = new AbortController()
  let commits = 0

  async function write () {
    while (!stopping.signal.aborted) {
      await commit()
      commits++
      const due = start + commits * 1000 / perSecond
      await sleep(Math.max(0, due - performance.now()))
    }
  }
  const writing = write()
  // Whoever stops it learns of a failure.
  writing.catch(() => {})

  return {
    async stop () {
      stopping.abort()
      await writing
      return commits / (performance.now() - start) * 1000
    },
  }
}

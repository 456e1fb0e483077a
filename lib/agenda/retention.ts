import type { AnySql, Sql } from '../database/pools.ts'
import { retryConflict } from '../database/conflicts.ts'
import { runsUntil, withDetails } from './details.ts'

/** Rows per transaction. Short transactions do not delay new registrations. */
const BATCH_ROWS = 1000

/** SQL: registrations for past events that are older than this PostgreSQL interval. */
const pastRegistrations = (sql: AnySql, age: string) => sql`
  event_registrations AS registrations JOIN events ON events.id = registrations.event_id ${withDetails(sql)}
  WHERE registered_at < now() - ${age}::text::interval AND ${runsUntil(sql)} < now()
`

/** Counts the registrations that would be deleted, and their events. */
export async function countPastRegistrations (sql: Sql, age: string) {
  const [counts] = await sql<[{ registrations: number, events: number }]>`
    SELECT count(*)::int AS registrations, count(DISTINCT events.id)::int AS events
    FROM ${pastRegistrations(sql, age)}
  `
  return counts
}

/** Deletes old registrations in batches. The service may be running. Returns the number of deleted registrations. */
export async function removePastRegistrations (sql: Sql, age: string, report: (removed: number) => void) {
  let removed = 0
  for (let found = BATCH_ROWS; found === BATCH_ROWS;) {
    const batch = await retryConflict(() => removeBatch(sql, age))
    found = batch.found
    removed += batch.removed
    if (found > 0) report(removed)
  }
  return removed
}

function removeBatch (sql: Sql, age: string) {
  return sql.begin(async sql => {
    const batch = await sql<{ id: string, eventId: string }[]>`
      SELECT registrations.id, events.id AS "eventId" FROM ${pastRegistrations(sql, age)}
      ORDER BY registered_at LIMIT ${BATCH_ROWS}
    `
    if (batch.length === 0) return { found: 0, removed: 0 }
    // The lock order of the operation that deletes an event prevents deadlocks.
    await sql`
      SELECT FROM events WHERE id IN ${sql(batch.map(({ eventId }) => eventId))} ORDER BY id FOR KEY SHARE
    `
    // The lock order of other retentions and of an erasure. A parallel deletion of an event may have deleted some rows.
    const ids = sql(batch.map(({ id }) => id))
    await sql`SELECT FROM event_registrations WHERE id IN ${ids} ORDER BY id FOR UPDATE`
    const { count } = await sql`DELETE FROM event_registrations WHERE id IN ${ids}`
    return { found: batch.length, removed: count }
  })
}

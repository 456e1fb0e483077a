import type { TransactionSql } from 'postgres'

import type { Sql } from './client.ts'

/** Rows of a transaction: it is short, so that no registration waits for its locks. */
const BATCH_ROWS = 1000

/** Registrations that were made longer ago than this interval of PostgreSQL's, for events that are over. */
const pastRegistrations = (sql: Sql | TransactionSql, age: string) => sql`
  event_registrations JOIN events ON events.id = event_id
  WHERE registered_at < now() - ${age}::text::interval AND date < now()
`

/** How many registrations a rule removes, and for how many events. */
export async function countPastRegistrations (sql: Sql, age: string) {
  const [counts] = await sql<[{ registrations: number, events: number }]>`
    SELECT count(*)::int AS registrations, count(DISTINCT event_id)::int AS events
    FROM ${pastRegistrations(sql, age)}
  `
  return counts
}

/** Removes such registrations, batch after batch, beside a service that serves. Returns how many. */
export async function removePastRegistrations (sql: Sql, age: string, report: (removed: number) => void) {
  let removed = 0
  for (let found = BATCH_ROWS; found === BATCH_ROWS;) {
    const batch = await removeBatch(sql, age)
    found = batch.found
    removed += batch.removed
    if (found > 0) report(removed)
  }
  return removed
}

function removeBatch (sql: Sql, age: string) {
  return sql.begin(async sql => {
    const batch = await sql<{ id: string, eventId: string }[]>`
      SELECT event_registrations.id, event_id AS "eventId" FROM ${pastRegistrations(sql, age)}
      ORDER BY registered_at LIMIT ${BATCH_ROWS}
    `
    if (batch.length === 0) return { found: 0, removed: 0 }
    // In the order of the operation that deletes an event: another one deadlocks with it.
    await sql`
      SELECT FROM events WHERE id IN ${sql(batch.map(({ eventId }) => eventId))} ORDER BY id FOR KEY SHARE
    `
    // In the order of other retentions, and of an erasure. Fewer are left if an event was deleted meanwhile.
    const ids = sql(batch.map(({ id }) => id))
    await sql`SELECT FROM event_registrations WHERE id IN ${ids} ORDER BY id FOR UPDATE`
    const { count } = await sql`DELETE FROM event_registrations WHERE id IN ${ids}`
    return { found: batch.length, removed: count }
  })
}

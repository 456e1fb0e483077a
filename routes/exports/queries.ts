import type { FastifyJWT } from '@fastify/jwt'
import type { FastifyInstance } from 'fastify'

import { isManagedBy } from '../../lib/auth/permissions.ts'
import type { Sql } from '../../lib/database/client.ts'

/** Rows that are fetched at a time. No connection and no snapshot is held between, however slowly a client reads. */
const BATCH_ROWS = 250

/** Where a batch ends, for the next one to begin after it: all rows have a time that stays and an id. */
interface Position {
  time: string
  id: string
}

/** Before the newest row. */
const START: Position = { time: 'infinity', id: '00000000-0000-0000-0000-000000000000' }

/** Reads the rows after a position, a batch at most. */
export type Batch<Row> = (sql: Sql, after: Position) => Promise<readonly (Row & Position)[]>

/**
 * Reads all rows, the newest first. Resolves with the first of them at hand, so that what fails at once fails before
 * anything is sent.
 */
export async function readInBatches<Row> (
  read: FastifyInstance['database']['read'], batch: Batch<Row>
): Promise<AsyncIterable<Row>> {
  const first = await read(sql => batch(sql, START))
  return rest()

  async function * rest () {
    for (let rows = first; rows.length > 0; rows = await readAfter(rows.at(-1)!)) {
      yield * rows
      if (rows.length < BATCH_ROWS) return
    }
  }

  function readAfter (last: Position) {
    return read(sql => batch(sql, last))
  }
}

/** The event, and whether the user may manage it; `undefined` when there is no such event. */
export async function findManagedEvent (sql: Sql, user: FastifyJWT['user'], id: string) {
  const [event] = await sql<{ title: string, date: string, allowed: boolean }[]>`
    SELECT title, iso8601(date) AS date, ${isManagedBy(sql, user)} AS allowed FROM events WHERE id = ${id}
  `
  return event
}

/** A batch of those who are registered for an event. */
export const registrationsOf = (eventId: string): Batch<{ name: string, email: string }> => (sql, { time, id }) => sql`
  SELECT
    concat(first_name, ' ', last_name) AS name, email, iso8601(registered_at) AS time, registrations.id
  FROM event_registrations AS registrations JOIN users ON users.id = user_id
  WHERE event_id = ${eventId} AND registered_at <= ${time}::text::timestamptz
    AND (registered_at < ${time}::text::timestamptz OR registrations.id > ${id})
  ORDER BY registered_at DESC, registrations.id
  LIMIT ${BATCH_ROWS}
`

interface User {
  email: string
  firstName: string
  lastName: string
  role: string
  club: string | null
}

/** A batch of all users. */
export const allUsers: Batch<User> = (sql, { time, id }) => sql`
  SELECT
    email, first_name AS "firstName", last_name AS "lastName", role, clubs.name AS club,
    iso8601(created_at) AS time, users.id
  FROM users LEFT JOIN clubs ON clubs.id = club_id
  WHERE created_at <= ${time}::text::timestamptz
    AND (created_at < ${time}::text::timestamptz OR users.id > ${id})
  ORDER BY created_at DESC, users.id
  LIMIT ${BATCH_ROWS}
`

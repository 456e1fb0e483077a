import type { FastifyRequest } from 'fastify'

import type { AnySql, Sql } from '../database/pools.ts'
import { HttpError } from '../http/errors.ts'
import type { Role } from '../values/roles.ts'
import { REGISTRATIONS_NOT_ALLOWED } from '../values/schemas.ts'

/** The claims of a token that decide what its user may do. */
export interface User {
  id: string
  role: Role
}

/** Returns the user id in the request's token. Throws a 401 with this message if the token has no user. */
export function userIdOf ({ user }: FastifyRequest, refusal: string) {
  if (!user.id) throw new HttpError(401, refusal)
  return user.id
}

/**
 * Returns the user of a request as an argument of a cached query: the other claims would give each token of a user an
 * entry of its own in the cache.
 */
export const userOf = ({ user: { id, role } }: FastifyRequest): User => ({ id, role })

/** SQL condition on `events`: admins may manage all events, club heads only events of their current club. */
export const isManagedBy = (sql: AnySql, { id, role }: User) => sql`
  (${role === 'ADMIN'} OR events.club_id = (SELECT users.club_id FROM users WHERE users.id = ${id})) IS TRUE
`

/**
 * Finds an event that the user may manage. Throws a 400 for an empty id, a 404 for an unknown id, and a 403 with this
 * message if the user may not manage the event.
 */
export async function findManagedEvent (sql: AnySql, user: User, id: string, refusal: string) {
  if (!id) throw new HttpError(400, 'Event ID is required')
  const [event] = await sql<{ title: string, date: string, allowed: boolean }[]>`
    SELECT title, iso8601(date) AS date, ${isManagedBy(sql, user)} AS allowed FROM events WHERE id = ${id}
  `
  if (!event) throw new HttpError(404, 'Event not found')
  if (!event.allowed) throw new HttpError(403, refusal)
  return event
}

/** Throws the error for a user without a row of a list of registrations or seats, like `findManagedEvent`. */
export async function refuseRegistrations (sql: Sql, user: User, eventId: string): Promise<never> {
  await findManagedEvent(sql, user, eventId, REGISTRATIONS_NOT_ALLOWED)
  // The user got the right to manage the event after the list was read.
  throw new HttpError(403, REGISTRATIONS_NOT_ALLOWED)
}

import type { Static } from '@sinclair/typebox'

import type { Sql } from '../../../lib/database/pools.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import { INVALID_TOKEN } from '../../../lib/values/schemas.ts'
import type { create } from './schemas.ts'

type Calendar = Static<typeof create.response[201]>['calendar']

/**
 * Creates a calendar link, which replaces the previous link. Throws a 401 if the user is unknown, or if the token was
 * revoked since the request arrived, because the link would outlive the token.
 */
export function replaceCalendar (sql: Sql, { id, epoch }: { id: string, epoch?: string }, tokenHash: string) {
  return sql.begin(async sql => {
    // Waits for a running revocation, so that the next statement sees it. A later revocation waits for this
    // transaction.
    const { count } = await sql`SELECT FROM users WHERE id = ${id} FOR SHARE`
    if (count === 0) throw new HttpError(401, 'Unauthorized')
    const [calendar] = await sql<Pick<Calendar, 'createdAt'>[]>`
      INSERT INTO calendar_tokens (user_id, token_hash)
      SELECT ${id}, ${tokenHash}
      WHERE NOT EXISTS (SELECT FROM revoked_tokens WHERE user_id = ${id} AND epoch IS DISTINCT FROM ${epoch ?? null})
      ON CONFLICT (user_id) DO UPDATE SET token_hash = excluded.token_hash, created_at = excluded.created_at
      RETURNING iso8601(created_at) AS "createdAt"
    `
    if (!calendar) throw new HttpError(401, INVALID_TOKEN)
    return calendar
  })
}

/** Revokes the user's calendar link. Returns whether it existed. */
export async function deleteCalendar (sql: Sql, userId: string) {
  const { count } = await sql`DELETE FROM calendar_tokens WHERE user_id = ${userId}`
  return count > 0
}

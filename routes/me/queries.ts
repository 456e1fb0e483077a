import type { Static } from '@sinclair/typebox'

import { endTokens } from '../../lib/auth/ended-tokens.ts'
import { personalData } from '../../lib/auth/personal-data.ts'
import type { Body, CachedQuery } from '../../lib/cache/index.ts'
import type { Sql } from '../../lib/database/client.ts'
import type { createCalendar, exportData } from './schemas.ts'

type Calendar = Static<typeof createCalendar.response[201]>['calendar']

/** Gives the user a calendar, in place of the one they had; `undefined` when there is no such user. */
export async function replaceCalendar (sql: Sql, userId: string, tokenHash: string) {
  const [calendar] = await sql<Pick<Calendar, 'createdAt'>[]>`
    INSERT INTO calendar_tokens (user_id, token_hash)
    SELECT id, ${tokenHash} FROM users WHERE id = ${userId}
    ON CONFLICT (user_id) DO UPDATE SET token_hash = excluded.token_hash, created_at = excluded.created_at
    RETURNING iso8601(created_at) AS "createdAt"
  `
  return calendar
}

/** Takes the user's calendar away; returns whether there was one. */
export async function deleteCalendar (sql: Sql, userId: string) {
  const { count } = await sql`DELETE FROM calendar_tokens WHERE user_id = ${userId}`
  return count > 0
}

/** Ends all tokens of the user; returns whether there is such a user. */
export async function endTokensOf (sql: Sql, userId: string) {
  const { count } = await endTokens(sql, sql`SELECT id FROM users WHERE id = ${userId}`)
  return count > 0
}

/** Everything that the platform holds of the user; no row when there is no such user. */
export const exportQuery = (sql: Sql, userId: string): CachedQuery<Body<typeof exportData>> => ({
  fields: personalData(sql, userId),
})

import { createHmac } from 'node:crypto'

import type { Sql } from '../database/client.ts'

/** For how many days after a sign-in its network is known. */
const DAYS = 28

/**
 * The key of a known network: an HMAC of an email and a network, base64url. The database alone tells neither the
 * network nor who shares one.
 */
export function hashNetwork (key: Buffer, email: string, network: string) {
  return createHmac('sha256', key).update(`${email} ${network}`).digest('base64url')
}

/** Finds whether the user at hand has signed in from this network lately (`known`), and today (`known_today`). */
export const knownNetwork = (sql: Sql, hash: string) => sql`
  SELECT count(*) > 0 AS known, coalesce(bool_or(used_on >= current_date), false) AS known_today
  FROM known_networks WHERE user_id = users.id AND hash = ${hash} AND used_on > current_date - ${DAYS}::integer
`

/**
 * Remembers that a user has signed in from this network, and forgets some networks that were used too long ago. Writes
 * once a day for each user and network, and never for a user who was deleted or erased meanwhile.
 */
export async function rememberNetwork (sql: Sql, userId: string, hash: string) {
  const { count } = await sql`
    INSERT INTO known_networks (user_id, hash)
    SELECT id, ${hash} FROM users
    WHERE id = ${userId} AND NOT EXISTS (
      SELECT FROM known_networks WHERE user_id = users.id AND hash = ${hash} AND used_on >= current_date
    )
    FOR KEY SHARE
    ON CONFLICT (user_id, hash) DO UPDATE SET used_on = excluded.used_on
  `
  if (count === 0) return
  // A sign-in leaves one row behind and removes up to ten, so they do not pile up.
  await sql`
    DELETE FROM known_networks WHERE (user_id, hash) IN (
      SELECT user_id, hash FROM known_networks
      WHERE used_on <= current_date - ${DAYS}::integer ORDER BY used_on LIMIT 10
      FOR UPDATE SKIP LOCKED
    )
  `
}

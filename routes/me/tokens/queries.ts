import { revokeTokens } from '../../../lib/auth/revoked-tokens.ts'
import type { Sql } from '../../../lib/database/pools.ts'

/** Revokes all tokens of a user. Returns whether the user exists. */
export async function revokeTokensOf (sql: Sql, userId: string) {
  const { count } = await revokeTokens(sql, sql`SELECT id FROM users WHERE id = ${userId} FOR NO KEY UPDATE`)
  return count > 0
}

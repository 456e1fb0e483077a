import { PLACEHOLDER } from '../../../lib/auth/passwords.ts'
import type { CachedQuery } from '../../../lib/cache/index.ts'
import type { Sql } from '../../../lib/database/pools.ts'

/** The state of an account. Without a row for an unknown user. */
export const accountQuery = (sql: Sql, userId: string): CachedQuery => ({
  fields: sql`
    SELECT json_build_object(
      'isEmailVerified', email_verified_at IS NOT NULL,
      'hasPassword', password <> ${PLACEHOLDER},
      'isLinked', idp_id IS NOT NULL,
      'calendar', (
        SELECT json_build_object('createdAt', iso8601(created_at)) FROM calendar_tokens WHERE user_id = users.id
      )
    ) AS account
    FROM users WHERE id = ${userId}
  `,
})

import type { Static } from '@sinclair/typebox'

import type { Sql } from '../../../lib/database/pools.ts'
import { assignments, profileColumns } from '../../../lib/database/columns.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import type { CurrentUser } from '../../../lib/values/schemas.ts'

/**
 * Changes the given fields of a user. Returns the user; `undefined` for an unknown user. `avatar` is the id of a
 * picture that the user has uploaded; throws a 404 for any other id. `null` removes any picture.
 */
export function setProfile (
  sql: Sql, picturesUrl: string | null, id: string,
  { firstName, lastName, avatar }: { firstName?: string, lastName?: string, avatar?: string | null }
) {
  return sql.begin(async sql => {
    if (typeof avatar === 'string') {
      // The lock order of an erasure prevents a deadlock.
      await sql`SELECT FROM users WHERE id = ${id} FOR NO KEY UPDATE`
      const { count } = await sql`
        SELECT FROM pictures WHERE id = ${avatar} AND user_id = ${id} FOR KEY SHARE
      `
      if (count === 0) throw new HttpError(404, 'Picture not found')
    }
    const changes = { firstName, lastName, avatar: typeof avatar === 'string' ? picturesUrl + avatar : avatar }
    const [user] = await sql<Static<typeof CurrentUser>[]>`
      WITH changed AS (
        UPDATE users SET ${assignments(sql, changes, ['firstName', 'lastName', 'avatar'])}
        WHERE id = ${id} RETURNING *
      )
      SELECT ${profileColumns(sql, picturesUrl)} FROM changed AS users LEFT JOIN clubs ON clubs.id = club_id
    `
    return user
  })
}

import type { Sql } from '../database/client.ts'

/** How often something may be done within so many seconds, by each network or user; `max` is 0 for any number. */
export interface RateLimit {
  name: 'failed-sign-ins' | 'registrations' | 'submissions'
  max: number
  window: number
}

/**
 * Counts one more use, for all instances together, however many are counted at once. Returns 0, or the seconds to wait
 * when the limit is reached: then nothing is counted, nor written.
 */
export async function takeUse (sql: Sql, limit: RateLimit, key: string): Promise<number> {
  if (!limit.max) return 0
  const [row] = await sql<{ wait: number }[]>`
    WITH waiting AS (${waitFor(sql, limit, key)}), counted AS (${countUse(sql, limit, key)})
    SELECT wait FROM waiting UNION ALL SELECT 0 FROM counted
  `
  // Others at the same time were faster and reached the limit: it is there to be found now.
  if (!row) return takeUse(sql, limit, key)
  if (row.wait === 0) await removePastUses(sql, limit.window)
  return row.wait
}

/** The same for a user. Nothing is counted, nor written, for one who was deleted or erased: their token still works. */
export function takeUseOfUser (sql: Sql, limit: RateLimit, userId: string): Promise<number> {
  if (!limit.max) return Promise.resolve(0)
  return sql.begin(async transaction => {
    // An erasure that runs is waited for; one that begins waits.
    const { count } = await transaction`SELECT FROM users WHERE id = ${userId} FOR KEY SHARE`
    return count > 0 ? takeUse(transaction as unknown as Sql, limit, userId) : 0
  })
}

/** The statement that finds for how many seconds the limit is reached; no row when it is not. */
export const waitFor = (sql: Sql, { name, max, window }: RateLimit, key: string) => sql`
  SELECT ceil(extract(epoch FROM times[${max}] - ${since(sql, window)}))::integer AS wait
  FROM rate_limits
  WHERE name = ${name} AND key = ${key} AND times[${max}] > ${since(sql, window)}
`

/**
 * The statement that counts one more use where the relation `waiting` has no row; it returns a row unless others have
 * reached the limit meanwhile.
 */
export const countUse = (sql: Sql, { name, max, window }: RateLimit, key: string) => sql`
  INSERT INTO rate_limits AS known (name, key, times)
  SELECT ${name}, ${key}, ARRAY[now()] WHERE NOT EXISTS (SELECT FROM waiting)
  ON CONFLICT (name, key) DO UPDATE SET times = (now() || known.times)[:${max}]
    WHERE (known.times[${max}] > ${since(sql, window)}) IS NOT TRUE
  RETURNING true
`

/**
 * The statement that removes some rows whose last use is past the window. A use leaves at most one row behind and
 * removes up to ten, so they do not pile up. A row that another use is about to change stays.
 */
export const removePastUses = (sql: Sql, window: number) => sql`
  DELETE FROM rate_limits WHERE (name, key) IN (
    SELECT name, key FROM rate_limits
    WHERE times[1] <= ${since(sql, window)} ORDER BY times[1] LIMIT 10
    FOR UPDATE SKIP LOCKED
  )
`

/** When the window began, by the clock of the database. */
export const since = (sql: Sql, window: number) => sql`(now() - make_interval(secs => ${window}))`

import type { Sql } from '../database/client.ts'
import { HttpError } from '../errors.ts'
import { clientNetwork } from '../http/client-network.ts'

/** How often a client or an account may do something within a window; `max` is 0 for any number. */
export interface RateLimit {
  name: 'failed-sign-ins' | 'failed-sign-ins-for-account' | 'failed-callbacks' | 'failed-links' | 'registrations' |
    'submissions' | 'event-messages' | 'account-mails' | 'account-mails-to'
  /** A network, the id of a user, an email, or an email and a network. */
  key: string
  max: number
}

/**
 * Counts one more use against each of these limits, for all instances together, however many are counted at once.
 * Returns 0, or the seconds to wait when one of them is reached: then nothing is counted, nor written. If another use
 * reaches one of them at the same moment, this one counts against the others only.
 */
export async function takeUse (sql: Sql, limits: RateLimit[], windowSeconds: number): Promise<number> {
  const counted = limits.filter(({ max }) => max > 0)
  if (counted.length === 0) return 0
  const [row] = await sql<[{ waitSeconds: number, count: number }]>`
    WITH ${limitsTable(sql, counted)}, reached AS (${reachedLimits(sql, windowSeconds)}), counted AS (
      INSERT INTO rate_limits AS known (name, key, times)
      SELECT name, key, ARRAY[now()] FROM limits WHERE NOT EXISTS (SELECT FROM reached)
      -- All statements lock the rows in this order, so no two of them deadlock.
      ORDER BY name, key
      ON CONFLICT (name, key) DO UPDATE
        SET times = (now() || known.times)[:${maxOf(sql)}]
        WHERE (known.times[${maxOf(sql)}] > ${since(sql, windowSeconds)}) IS NOT TRUE
      RETURNING true
    )
    SELECT
      (SELECT coalesce(max(wait_seconds), 0) FROM reached) AS "waitSeconds",
      (SELECT count(*)::integer FROM counted) AS count
  `
  if (row.waitSeconds > 0) return row.waitSeconds
  // A use at the same time was faster and reached a limit: it is there to be found now.
  if (row.count < counted.length) return takeUse(sql, limits, windowSeconds)
  await removePastUses(sql, windowSeconds)
  return 0
}

/** The same for a user. Nothing is counted, nor written, for one who was deleted or erased: their token still works. */
export function takeUseOfUser (sql: Sql, limit: RateLimit, windowSeconds: number): Promise<number> {
  if (!limit.max) return Promise.resolve(0)
  return sql.begin(async transaction => {
    // An erasure that runs is waited for; one that begins waits.
    const { count } = await transaction`SELECT FROM users WHERE id = ${limit.key} FOR KEY SHARE`
    return count > 0 ? takeUse(transaction as unknown as Sql, [limit], windowSeconds) : 0
  })
}

/** The seconds to wait when one of these limits is reached, else 0. Nothing is counted. */
export async function waitFor (sql: Sql, limits: RateLimit[], windowSeconds: number) {
  const [row] = await sql<[{ waitSeconds: number }]>`
    WITH ${limitsTable(sql, limits)}, reached AS (${reachedLimits(sql, windowSeconds)})
    SELECT coalesce(max(wait_seconds), 0) AS "waitSeconds" FROM reached
  `
  return row.waitSeconds
}

/** How often the use of a `known` row may be counted. */
const maxOf = (sql: Sql) => sql`(SELECT max FROM limits WHERE (name, key) = (known.name, known.key))`

/** These limits as the CTE `limits`. */
export const limitsTable = (sql: Sql, limits: RateLimit[]) => sql`
  limits (name, key, max) AS (
    SELECT name, key, max::integer
    FROM (VALUES ${sql(limits.map(({ name, key, max }) => [name, key, max]))}) AS given (name, key, max)
  )
`

/** The statement that finds which `limits` are reached: the name of each, and for how many seconds it will be. */
export const reachedLimits = (sql: Sql, windowSeconds: number) => sql`
  SELECT name, ceil(extract(epoch FROM times[max] - ${since(sql, windowSeconds)}))::integer AS wait_seconds
  FROM limits JOIN rate_limits USING (name, key)
  WHERE times[max] > ${since(sql, windowSeconds)}
`

/**
 * Removes some rows whose last use is past the window. A use leaves a row for each of its limits behind and removes up
 * to ten, so they do not pile up. A row that another use is about to change stays.
 */
async function removePastUses (sql: Sql, windowSeconds: number) {
  await sql`
    DELETE FROM rate_limits WHERE (name, key) IN (
      SELECT name, key FROM rate_limits
      WHERE times[1] <= ${since(sql, windowSeconds)} ORDER BY times[1] LIMIT 10
      FOR UPDATE SKIP LOCKED
    )
  `
}

/** When the window began, by the clock of the database. */
const since = (sql: Sql, windowSeconds: number) => sql`(now() - make_interval(secs => ${windowSeconds}))`

/** Throws a 429 with this message when a limit is reached for any number of seconds. */
export function throwIfReached (message: string, waitSeconds: number) {
  if (waitSeconds > 0) throw new HttpError(429, message, { headers: { 'retry-after': waitSeconds } })
}

/** A /56 may have four times the uses of a /64: one subscriber has it, or many share it. */
const PREFIX_FACTOR = 4

/** The limit of a client's network; with IPv6 also that of its /56, which one subscriber may have. */
export function networkLimits (name: RateLimit['name'], ip: string, max: number): RateLimit[] {
  const [network, prefix] = [clientNetwork(ip), clientNetwork(ip, 56)]
  const limit = { name, key: network, max }
  return prefix === network ? [limit] : [limit, { name, key: prefix, max: PREFIX_FACTOR * max }]
}

/** Mails with a link to one address within the window. */
const MAILS_PER_ADDRESS = 5

/** The limits of mails that a client has the service send to this address, whether it has an account or not. */
export const accountMailLimits = (email: string, ip: string, perNetwork: number): RateLimit[] => [
  { name: 'account-mails-to', key: email, max: MAILS_PER_ADDRESS },
  ...networkLimits('account-mails', ip, perNetwork),
]

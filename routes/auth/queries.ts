import type { Role } from '../../lib/auth/accounts.ts'
import type { Body, CachedQuery } from '../../lib/cache/index.ts'
import type { Sql } from '../../lib/database/client.ts'
import type { Identity } from '../../lib/auth/identity-provider.ts'
import { PLACEHOLDER } from '../../lib/auth/passwords.ts'
import { countUse, type RateLimit, removePastUses, since, waitFor } from '../../lib/auth/rate-limits.ts'
import type { me } from './schemas.ts'

interface Credentials {
  userId: string
  email: string
  role: Role
  password: string
}

/** Whose failures are counted together: those for an account, whether it exists or not, from one network. */
interface LoginKey {
  email: string
  network: string
}

/** How many failures in how many seconds make a login key wait, and a network. 0 is for any number. */
interface SignInLimits {
  attempts: number
  attemptsPerNetwork: number
  window: number
}

/**
 * What a sign-in begins with: the account with this email, if there is one, and for how many seconds the login key or
 * its network has to wait, or 0.
 */
export async function findCredentials (sql: Sql, key: LoginKey, limits: SignInLimits) {
  const [row] = await sql<[{ wait: number, account: Credentials | null }]>`
    WITH waiting AS (${waitColumn(sql, key, limits)})
    SELECT (SELECT coalesce(max(wait), 0) FROM waiting) AS wait, (
      SELECT json_build_object('userId', id, 'email', email, 'role', role, 'password', password)
      FROM users WHERE email = ${key.email}
    ) AS account
  `
  return row
}

/**
 * Counts a failed sign-in for its login key and its network. Returns 0, or the seconds to wait where others have
 * reached a limit meanwhile: then nothing is written, or the failure counts for the network only.
 */
export async function recordFailedLogin (sql: Sql, key: LoginKey, limits: SignInLimits): Promise<number> {
  const { email, network } = key
  const { attempts, attemptsPerNetwork, window } = limits
  const inNetwork = attemptsPerNetwork
    ? countUse(sql, networkLimit(limits), network)
    : sql`SELECT WHERE NOT EXISTS (SELECT FROM waiting)`
  const forKey = attempts
    ? sql`
      INSERT INTO sign_in_failures AS known (email, network, times)
      SELECT ${email}, ${network}, ARRAY[now()] FROM counted_in_network
      ON CONFLICT (email, network) DO UPDATE SET times = (now() || known.times)[:${attempts}]
        WHERE (known.times[${attempts}] > ${since(sql, window)}) IS NOT TRUE
      RETURNING true`
    : sql`SELECT FROM counted_in_network`
  const [row] = await sql<{ wait: number }[]>`
    WITH waiting AS (${waitColumn(sql, key, limits)}), counted_in_network AS (${inNetwork}), counted AS (${forKey})
    SELECT wait FROM waiting UNION ALL SELECT 0 FROM counted ORDER BY wait DESC LIMIT 1
  `
  // Others at the same time were faster and reached the limit: it is there to be found now.
  return row ? row.wait : recordFailedLogin(sql, key, limits)
}

/**
 * Forgets the failures of a login key that turned out to know the password; those of its network stay. Returns 0, or
 * the seconds to wait where others have reached a limit meanwhile: then nothing is forgotten.
 */
export async function resetFailedLogins (sql: Sql, key: LoginKey, limits: SignInLimits): Promise<number> {
  const { email, network } = key
  const [row] = await sql<[{ wait: number }]>`
    WITH waiting AS (${waitColumn(sql, key, limits)}), forgotten AS (
      DELETE FROM sign_in_failures
      WHERE email = ${email} AND network = ${network} AND NOT EXISTS (SELECT FROM waiting)
    )
    SELECT coalesce(max(wait), 0) AS wait FROM waiting
  `
  return row.wait
}

/** Removes some failures that are past the window, for login keys as for networks. */
export async function removePastFailures (sql: Sql, { window }: SignInLimits) {
  await sql`
    WITH past AS (${removePastUses(sql, window)})
    DELETE FROM sign_in_failures WHERE (email, network) IN (
      SELECT email, network FROM sign_in_failures
      WHERE times[1] <= ${since(sql, window)} ORDER BY times[1] LIMIT 10
      FOR UPDATE SKIP LOCKED
    )
  `
}

/** Finds the seconds until the login key and its network may try again; no row when that is now. */
const waitColumn = (sql: Sql, { email, network }: LoginKey, limits: SignInLimits) => sql`
  SELECT ceil(extract(epoch FROM times[${limits.attempts}] - ${since(sql, limits.window)}))::integer AS wait
  FROM sign_in_failures
  WHERE email = ${email} AND network = ${network} AND times[${limits.attempts}] > ${since(sql, limits.window)}
  UNION ALL
  ${waitFor(sql, networkLimit(limits), network)}
`

const networkLimit = ({ attemptsPerNetwork, window }: SignInLimits): RateLimit =>
  ({ name: 'failed-sign-ins', max: attemptsPerNetwork, window })

/** A user as they see themselves, with their club; no row for an unknown user. */
export const profileQuery = (sql: Sql, id: string): CachedQuery<Body<typeof me>> => ({
  fields: sql`
    SELECT profile AS user
    FROM (
      SELECT
        users.id, first_name AS "firstName", last_name AS "lastName", email, avatar, role,
        CASE WHEN clubs.id IS NOT NULL
          THEN json_build_object('id', clubs.id, 'name', clubs.name, 'imageUrl', clubs.image_url)
        END AS club
      FROM users LEFT JOIN clubs ON clubs.id = users.club_id
      WHERE users.id = ${id}
    ) AS profile
  `,
})

interface ProviderAccount extends Omit<Credentials, 'password'> {
  /** What this sign-in did to the account; null when it was linked before. */
  account: 'created' | 'linked' | null
}

/**
 * The account of a person whom the identity provider knows by this email: a new one, an existing one that is linked and
 * takes over the picture if it has none, or a linked one that is left alone.
 */
export async function signInWithIdentity (
  sql: Sql, identity: Identity & { email: string }
): Promise<ProviderAccount> {
  const { email, id, avatar, firstName, lastName } = identity
  const [account] = await sql<ProviderAccount[]>`
    WITH known AS (
      SELECT id, email, role, idp_id FROM users WHERE email = ${email}
    ), changed AS (
      INSERT INTO users (email, password, idp_id, avatar, first_name, last_name)
      VALUES (${email}, ${PLACEHOLDER}, ${id}, ${avatar}, ${firstName}, ${lastName})
      ON CONFLICT (email) DO UPDATE
        SET idp_id = excluded.idp_id, avatar = coalesce(users.avatar, excluded.avatar)
        WHERE users.idp_id IS NULL
      RETURNING id, email, role
    )
    SELECT id AS "userId", email, role,
      CASE WHEN EXISTS (SELECT FROM known) THEN 'linked' ELSE 'created' END AS account
    FROM changed
    UNION ALL
    SELECT id, email, role, NULL FROM known WHERE idp_id IS NOT NULL
  `
  // Another first sign-in of this person was faster: its account was in the way, and is there to be found now.
  return account ?? signInWithIdentity(sql, identity)
}

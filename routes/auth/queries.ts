import type { Role } from '../../lib/accounts.ts'
import type { Body, CachedQuery } from '../../lib/cache/snapshot-cache.ts'
import type { Sql } from '../../lib/database.ts'
import type { Identity } from '../../lib/identity-provider.ts'
import { PLACEHOLDER } from '../../lib/passwords.ts'
import type { me } from './schemas.ts'

interface Credentials {
  userId: string
  email: string
  role: Role
  password: string
}

/** Whose guesses are counted together: those of an account, whether it exists or not, from one network. */
interface Guesser {
  email: string
  network: string
}

/** How many failures in how many seconds make a guesser wait. */
interface GuessLimit {
  attempts: number
  window: number
}

/**
 * What a sign-in begins with: the account with this email, if there is one, and for how many seconds the guesser has to
 * wait, or 0.
 */
export async function findCredentials (sql: Sql, guesser: Guesser, limit: GuessLimit) {
  const [row] = await sql<[{ wait: number, account: Credentials | null }]>`
    SELECT coalesce((${wait(sql, guesser, limit)}), 0) AS wait, (
      SELECT json_build_object('userId', id, 'email', email, 'role', role, 'password', password)
      FROM users WHERE email = ${guesser.email}
    ) AS account
  `
  return row
}

/**
 * Counts a failure. Returns 0, or the seconds to wait where others have reached the limit meanwhile: then nothing is
 * counted, nor written.
 */
export async function countFailure (sql: Sql, guesser: Guesser, limit: GuessLimit): Promise<number> {
  const { email, network } = guesser
  const { attempts, window } = limit
  const [row] = await sql<{ wait: number }[]>`
    WITH waiting AS (${wait(sql, guesser, limit)}), counted AS (
      INSERT INTO sign_in_failures AS known (email, network, times)
      SELECT ${email}, ${network}, ARRAY[now()] WHERE NOT EXISTS (SELECT FROM waiting)
      ON CONFLICT (email, network) DO UPDATE SET times = (now() || known.times)[:${attempts}]
        WHERE (known.times[${attempts}] > ${since(sql, window)}) IS NOT TRUE
      RETURNING 0 AS wait
    )
    SELECT wait FROM waiting UNION ALL SELECT wait FROM counted
  `
  // Others at the same time were faster and reached the limit: it is there to be found now.
  return row ? row.wait : countFailure(sql, guesser, limit)
}

/**
 * Forgets the failures of a guesser who turned out to know the password. Returns 0, or the seconds to wait where others
 * have reached the limit meanwhile: then they are kept.
 */
export async function forgetFailures (sql: Sql, guesser: Guesser, limit: GuessLimit): Promise<number> {
  const { email, network } = guesser
  const [row] = await sql<{ wait: number }[]>`
    WITH waiting AS (${wait(sql, guesser, limit)}), forgotten AS (
      DELETE FROM sign_in_failures
      WHERE email = ${email} AND network = ${network} AND NOT EXISTS (SELECT FROM waiting)
    )
    SELECT wait FROM waiting
  `
  return row?.wait ?? 0
}

/**
 * Removes some guessers whose last failure is past the window. A failure leaves at most one row behind and removes up
 * to ten, so they do not pile up. It waits for nobody: what another sign-in is about to change is left alone.
 */
export async function removePastFailures (sql: Sql, { window }: GuessLimit) {
  await sql`
    DELETE FROM sign_in_failures WHERE (email, network) IN (
      SELECT email, network FROM sign_in_failures
      WHERE times[1] <= ${since(sql, window)} ORDER BY times[1] LIMIT 10
      FOR UPDATE SKIP LOCKED
    )
  `
}

/** The seconds until the guesser may try again; no row when that is now. */
const wait = (sql: Sql, { email, network }: Guesser, { attempts, window }: GuessLimit) => sql`
  SELECT ceil(extract(epoch FROM times[${attempts}] - ${since(sql, window)}))::integer AS wait
  FROM sign_in_failures
  WHERE email = ${email} AND network = ${network} AND times[${attempts}] > ${since(sql, window)}
`

/** When the window began, by the clock of the database. */
const since = (sql: Sql, window: number) => sql`(now() - make_interval(secs => ${window}))`

/** A user as they see themselves, with their club; no answer when there is no such user. */
export const readProfile = (sql: Sql, id: string): CachedQuery<Body<typeof me>> => ({
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

/**
 * The account of a person whom the identity provider knows by this email: a new one, an existing one that is linked and
 * takes over the picture if it has none, or a linked one that is left alone.
 */
export async function signInWithIdentity (
  sql: Sql, identity: Identity & { email: string }
): Promise<Omit<Credentials, 'password'>> {
  const { email, id, avatar, firstName, lastName } = identity
  const [account] = await sql<Credentials[]>`
    WITH changed AS (
      INSERT INTO users (email, password, idp_id, avatar, first_name, last_name)
      VALUES (${email}, ${PLACEHOLDER}, ${id}, ${avatar}, ${firstName}, ${lastName})
      ON CONFLICT (email) DO UPDATE
        SET idp_id = excluded.idp_id, avatar = coalesce(users.avatar, excluded.avatar)
        WHERE users.idp_id IS NULL
      RETURNING id, email, role
    )
    SELECT id AS "userId", email, role FROM changed
    UNION ALL
    SELECT id, email, role FROM users WHERE email = ${email} AND idp_id IS NOT NULL
  `
  // Another first sign-in of this person was faster: its account was in the way, and is there to be found now.
  return account ?? signInWithIdentity(sql, identity)
}

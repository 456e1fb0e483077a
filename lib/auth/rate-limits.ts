import type { AnySql, Sql } from '../database/pools.ts'
import { HttpError } from '../http/errors.ts'
import { sha256 } from '../values/formats.ts'
import { Message, Named, RetryAfter } from '../values/schemas.ts'

/**
 * A limit on uses within a window. Without it, a client could try 36,000 passwords of an account in 15 minutes per core
 * (25 ms each) instead of 20. All instances on one database share the count.
 */
export interface RateLimit {
  name: 'failed-sign-ins-for-account' | 'failed-sign-ins-of-network' | 'new-passwords' | 'registrations' |
    'event-messages' | 'account-emails' | 'account-emails-to' | 'drafts'
  /** A network, an email address or its hash, or a user id. Addresses and ids may be followed by a network. */
  key: string
  /** Maximum number of uses; 0 for no limit. */
  max: number
  /** Error message of the 429. */
  message: string
  /**
   * If this account has signed in from this network before (`rememberNetwork`), the limit does not refuse its right
   * password. This is the key of that memory.
   */
  exempt?: string | undefined
}

export const TOO_MANY_FAILURES = 'Too many failed sign-ins, please try again later'
export const TOO_MANY_PASSWORDS = 'Too many new passwords, please try again later'
export const TOO_MANY_EMAILS = 'Too many emails, please try again later'

/** The responses with these messages. */
export const TooManyFailures = { ...Named('TooManyFailures', Message(TOO_MANY_FAILURES)), headers: RetryAfter }
export const TooManyEmails = { ...Named('TooManyEmails', Message(TOO_MANY_EMAILS)), headers: RetryAfter }

/**
 * Counts a use, or several, against a limit. The window begins with the first use. If the limit is reached, throws a
 * 429 with the seconds to wait, and counts nothing. Only several uses of one call can exceed the limit.
 */
export async function consume (sql: AnySql, limit: RateLimit, windowSeconds: number, uses = 1) {
  const { name, key, max } = limit
  if (max === 0) return
  const { count } = await sql`
    WITH past AS (
      -- Each use adds at most one row and deletes up to ten expired rows, so that rows do not accumulate.
      DELETE FROM rate_limits WHERE (name, key) IN (
        SELECT name, key FROM rate_limits
        WHERE ends_at <= now() AND (name, key) <> (${name}, ${key}) ORDER BY ends_at LIMIT 10
        FOR UPDATE SKIP LOCKED
      )
    )
    INSERT INTO rate_limits AS used (name, key, uses, ends_at)
    SELECT ${name}, ${key}, ${uses}, now() + make_interval(secs => ${windowSeconds})
    WHERE NOT EXISTS (${reached(sql, name, key, max)})
    ON CONFLICT (name, key) DO UPDATE SET
      uses = excluded.uses + CASE WHEN used.ends_at > now() THEN used.uses ELSE 0 END,
      ends_at = CASE WHEN used.ends_at > now() THEN used.ends_at ELSE excluded.ends_at END
    WHERE used.uses < ${max} OR used.ends_at <= now()
  `
  if (count > 0) return
  throw tooMany(limit, Math.max(1, await secondsUntilAllowed(sql, limit)))
}

/**
 * Runs an attempt to verify a password and counts its failure against the limits. If a limit is reached, throws the 429
 * of `consume`. Returns whether the attempt succeeded. A limit with exemptions is checked only after the attempt, for
 * everybody: otherwise the status or the time of a wrong password would tell whether there is an account.
 */
export async function limitFailures (
  sql: Sql, limits: RateLimit[], windowSeconds: number, attempt: () => Promise<boolean>
) {
  for (const limit of limits) if (!limit.exempt) await assertAllowed(sql, limit)
  const verified = await attempt()
  // Parallel attempts may have reached the limit. Then the response must not tell whether the password was correct.
  for (const limit of limits) await (verified ? assertAllowed(sql, limit) : consume(sql, limit, windowSeconds))
  return verified
}

/** Throws the 429 of `consume` if a limit is reached, unless it exempts the account. Does not count a use. */
async function assertAllowed (sql: Sql, limit: RateLimit) {
  const seconds = await secondsUntilAllowed(sql, limit)
  if (seconds > 0 && !await isExempt(sql, limit)) throw tooMany(limit, seconds)
}

async function secondsUntilAllowed (sql: AnySql, { name, key, max }: RateLimit) {
  if (max === 0) return 0
  const [row] = await sql<{ seconds: number }[]>`${reached(sql, name, key, max)}`
  return row?.seconds ?? 0
}

async function isExempt (sql: Sql, { exempt }: RateLimit) {
  if (!exempt) return false
  const { count } = await sql`SELECT FROM rate_limits WHERE name = ${KNOWN} AND key = ${exempt} AND ends_at > now()`
  return count > 0
}

const tooMany = ({ message }: RateLimit, seconds: number) =>
  new HttpError(429, message, { headers: { 'retry-after': seconds } })

/** Forgets all uses of a limit. */
export async function forgetUses (sql: Sql, { name, key }: RateLimit) {
  await sql`DELETE FROM rate_limits WHERE name = ${name} AND key = ${key}`
}

/** SQL query: the seconds until a reached limit allows the next use. Empty if the limit is not reached. */
const reached = (sql: AnySql, name: string, key: string, max: number) => sql`
  SELECT ceil(extract(epoch FROM ends_at - now()))::integer AS seconds FROM rate_limits
  WHERE name = ${name} AND key = ${key} AND uses >= ${max} AND ends_at > now()
`

/** Name of the rows of `rememberNetwork`. */
const KNOWN = 'known-networks'

/** Days for which the network of a sign-in is remembered. They begin again if at most EXTENDED_DAYS are left. */
const KNOWN_DAYS = 90
const EXTENDED_DAYS = 60

/** Returns the key for an account and a network, which is stored as a hash. */
const knownNetwork = (userId: string, network: string) =>
  `${userId} ${sha256(`${userId} ${network}`)}`

/**
 * Remembers that a user has signed in from a network, so that failures of others there do not refuse them. Writes at
 * most once in 30 days, because every commit empties the cache.
 */
export async function rememberNetwork (sql: Sql, userId: string, network: string) {
  const key = knownNetwork(userId, network)
  await sql`
    INSERT INTO rate_limits (name, key, uses, ends_at)
    SELECT ${KNOWN}, ${key}, 1, now() + make_interval(days => ${KNOWN_DAYS})
    WHERE NOT EXISTS (
      SELECT FROM rate_limits
      WHERE name = ${KNOWN} AND key = ${key} AND ends_at > now() + make_interval(days => ${EXTENDED_DAYS})
    )
    ON CONFLICT (name, key) DO UPDATE SET ends_at = excluded.ends_at
  `
}

/** Limits wrong passwords from one network over all accounts. Accounts may not exist. */
export const failedSignInsOfNetwork = (userId: string | undefined, network: string, max: number): RateLimit => ({
  name: 'failed-sign-ins-of-network',
  key: network,
  max,
  message: TOO_MANY_FAILURES,
  exempt: knownNetwork(userId ?? '', network),
})

/** Limits wrong passwords for one account from one network. The account may not exist. */
export const failedSignInsForAccount = (email: string, network: string, max: number): RateLimit =>
  ({ name: 'failed-sign-ins-for-account', key: `${email} ${network}`, max, message: TOO_MANY_FAILURES })

/** Limits new passwords for one account from one network, because each hash uses a core for about 25 milliseconds. */
export const newPasswords = (userId: string, network: string): RateLimit =>
  ({ name: 'new-passwords', key: `${userId} ${network}`, max: 20, message: TOO_MANY_PASSWORDS })

/** Maximum number of emails with a link that one network can request within the window. */
const EMAILS_PER_NETWORK = 300

/** Maximum number of emails with a link to one address within the window. */
const EMAILS_PER_ADDRESS = 5

/** Counts a request for an email with a link, even if the address has no account. Throws like `consume`. */
export async function consumeAccountEmail (sql: Sql, email: string, network: string, windowSeconds: number) {
  const message = TOO_MANY_EMAILS
  await consume(sql, { name: 'account-emails', key: network, max: EMAILS_PER_NETWORK, message }, windowSeconds)
  // A hash, because an erasure keeps it: signing up and erasing the account in a loop must not flood a mailbox.
  const key = sha256(mailboxOf(email))
  await consume(sql, { name: 'account-emails-to', key, max: EMAILS_PER_ADDRESS, message }, windowSeconds)
}

/** Returns the mailbox of an address, without case and tag: `Ada+chess@Example.org` is `ada@example.org`. */
const mailboxOf = (email: string) => email.toLowerCase().replace(/(?<=^[^+@]+)\+[^@]*/, '')

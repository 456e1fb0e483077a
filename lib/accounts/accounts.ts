import type { PendingQuery, Row } from 'postgres'

import { hashPassword } from '../auth/passwords.ts'
import { revokeTokens } from '../auth/revoked-tokens.ts'
import type { AnySql, Sql } from '../database/pools.ts'
import type { Role } from '../values/roles.ts'
import { StartupError } from '../config/startup-error.ts'

export interface Account {
  id: string
  email: string
  firstName: string
  lastName: string
  role: Role
}

/** An account to create, with the hash of its password. */
export type NewAccount = Omit<Account, 'id'> & { password: string }

const columns = (sql: AnySql) => sql`id, email, first_name AS "firstName", last_name AS "lastName", role`

/**
 * Adds an account. Returns `undefined` if the email address already has an account. The statement `emailed` enqueues an
 * email to the user in the CTE `created`.
 */
export async function createAccount (
  sql: Sql, { email, password, firstName, lastName, role }: NewAccount,
  emailed: PendingQuery<Row[]> = sql`SELECT`
): Promise<Account | undefined> {
  const [account] = await sql<Account[]>`
    WITH created AS (
      INSERT INTO users (email, password, first_name, last_name, role)
      VALUES (${email}, ${password}, ${firstName}, ${lastName}, ${role})
      ON CONFLICT (email) DO NOTHING
      RETURNING *
    ), emailed AS (${emailed})
    SELECT ${columns(sql)} FROM created
  `
  return account
}

/**
 * SQL: the id of the account with exactly this email address, or else of the only account whose address
 * differs in case. For everything outside the contract, such as commands, because people ignore case in addresses.
 */
export const idOfEmail = (sql: AnySql, email: string) => sql`(
  SELECT id FROM (
    SELECT id, email = ${email} AS is_exact, count(*) OVER () AS alike
    FROM users WHERE lower(email COLLATE "C") = lower(${email}::text COLLATE "C")
  ) AS accounts
  WHERE is_exact OR alike = 1
)`

/**
 * Tells whether an account has this email address, ignoring case. For everything outside the contract, so that no two
 * accounts share a mailbox.
 */
export async function isTaken (sql: AnySql, email: string, exceptId: string | null = null) {
  const { count } = await sql`
    SELECT FROM users
    WHERE lower(email COLLATE "C") = lower(${email}::text COLLATE "C") AND id IS DISTINCT FROM ${exceptId}::uuid
  `
  return count > 0
}

/** Returns what a command has found by an email address. Throws a StartupError if it is undefined. */
export function assertFound<T> (found: T | undefined): T {
  if (found === undefined) throw new StartupError('Account not found. Check the email address.')
  return found
}

/** Changes the role of the account with this email address. Throws a StartupError without such an account. */
export async function setRole (sql: Sql, email: string, role: Role) {
  const [account] = await sql<Account[]>`
    UPDATE users SET role = ${role} WHERE id = ${idOfEmail(sql, email)} RETURNING ${columns(sql)}
  `
  return assertFound(account)
}

/** Sets the password of the account and revokes its tokens. Throws like `setRole`. */
export async function setPassword (sql: Sql, email: string, password: string) {
  const [account] = await sql<Account[]>`
    WITH changed AS (
      UPDATE users SET password = ${await hashPassword(password)} WHERE id = ${idOfEmail(sql, email)} RETURNING *
    ), revoked AS (${revokeTokens(sql, sql`SELECT id FROM changed`)})
    SELECT ${columns(sql)} FROM changed
  `
  return assertFound(account)
}

/** Revokes all tokens of the account. Throws like `setRole`. */
export async function signOut (sql: Sql, email: string) {
  const [account] = await sql<Account[]>`
    WITH account AS (SELECT * FROM users WHERE id = ${idOfEmail(sql, email)} FOR NO KEY UPDATE),
      revoked AS (${revokeTokens(sql, sql`SELECT id FROM account`)})
    SELECT ${columns(sql)} FROM account
  `
  return assertFound(account)
}

/** Lists all accounts, newest first. */
export function listAccounts (sql: Sql) {
  return sql<Account[]>`SELECT ${columns(sql)} FROM users ORDER BY created_at DESC, id`
}

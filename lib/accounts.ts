import type { Sql } from './database.ts'
import { hashPassword } from './passwords.ts'

export const ROLES = ['STUDENT', 'CLUB_HEAD', 'ADMIN'] as const
export type Role = typeof ROLES[number]

export interface Account {
  id: string
  email: string
  firstName: string
  lastName: string
  role: Role
}

const columns = (sql: Sql) => sql`id, email, first_name AS "firstName", last_name AS "lastName", role`

/** Adds an account with a password, for a client of this network; `undefined` when the email has one already. */
export async function createAccount (
  sql: Sql, { email, password, firstName, lastName, role }: Omit<Account, 'id'> & { password: string }, network?: string
): Promise<Account | undefined> {
  const [account] = await sql<Account[]>`
    INSERT INTO users (email, password, first_name, last_name, role)
    VALUES (${email}, ${await hashPassword(password, network)}, ${firstName}, ${lastName}, ${role})
    ON CONFLICT (email) DO NOTHING
    RETURNING ${columns(sql)}
  `
  return account
}

/** Gives the account of this email a role; `undefined` when there is none. */
export async function setRole (sql: Sql, email: string, role: Role): Promise<Account | undefined> {
  const [account] = await sql<Account[]>`
    UPDATE users SET role = ${role} WHERE email = ${email} RETURNING ${columns(sql)}
  `
  return account
}

/** Gives the account of this email a password; `undefined` when there is none. */
export async function setPassword (sql: Sql, email: string, password: string): Promise<Account | undefined> {
  const [account] = await sql<Account[]>`
    UPDATE users SET password = ${await hashPassword(password)} WHERE email = ${email} RETURNING ${columns(sql)}
  `
  return account
}

/** All accounts, the newest first. */
export function listAccounts (sql: Sql) {
  return sql<Account[]>`SELECT ${columns(sql)} FROM users ORDER BY created_at DESC, id`
}

/**
 * Sees to it that this email has an account with the role ADMIN: one that exists keeps its password, else it is made.
 * Tells which of the two it was. Of several instances that start at once, one makes it and the others find it.
 */
export async function ensureAdmin (sql: Sql, email: string, password: string): Promise<'found' | 'created'> {
  if (await setRole(sql, email, 'ADMIN')) return 'found'
  const admin = { email, password, firstName: 'Platform', lastName: 'Admin', role: 'ADMIN' as const }
  if (await createAccount(sql, admin)) return 'created'
  return ensureAdmin(sql, email, password)
}

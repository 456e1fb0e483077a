import type { FastifyRequest } from 'fastify'

import { verifyPassword } from '../../lib/auth/passwords.ts'
import { failedSignInsForAccount, limitFailures } from '../../lib/auth/rate-limits.ts'
import type { AnySql } from '../../lib/database/pools.ts'
import { audit } from '../../lib/http/audit.ts'
import { HttpError } from '../../lib/http/errors.ts'
import type { Role } from '../../lib/values/roles.ts'

interface Account {
  email: string
  /** Whether the account is linked to the identity provider. */
  isLinked: boolean
  /** A hash, or the placeholder. */
  password: string
  /** Whether the email address is verified. */
  isVerified: boolean
}

/** Returns the account of the signed-in user. Throws a 401 if it was deleted. */
export async function findOwnAccount ({ server: { sql }, user }: FastifyRequest) {
  const [account] = await sql<Account[]>`
    SELECT email, password, idp_id IS NOT NULL AS "isLinked", email_verified_at IS NOT NULL AS "isVerified"
    FROM users WHERE id = ${user.id}
  `
  if (!account) throw new HttpError(401, 'Unauthorized')
  return account
}

/** Returns the current role of the signed-in user. Throws a 401 for a deleted account. */
export async function findOwnRole (sql: AnySql, id: string) {
  const [user] = await sql<{ role: Role }[]>`SELECT role FROM users WHERE id = ${id}`
  if (!user) throw new HttpError(401, 'Unauthorized')
  return user.role
}

/** Throws a 401 for a wrong password, and a 429 after too many. Failed sign-ins also count. */
export async function assertPassword (request: FastifyRequest, { email, password }: Account, given: string) {
  const { server: { sql, queues, config }, network } = request
  const failures = failedSignInsForAccount(email, network, config.SIGN_IN_ATTEMPTS)
  const verified = await limitFailures(sql, [failures], config.LIMIT_WINDOW, () =>
    queues.passwords.run(request, () => verifyPassword(password, given)))
  if (!verified) refusePassword(request)
}

/** Throws the 401 for a wrong password. */
export function refusePassword (request: FastifyRequest): never {
  audit(request, 'password-refused', { network: request.network })
  throw new HttpError(401, 'Current password is wrong')
}

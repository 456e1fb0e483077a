import type { FastifyRequest } from 'fastify'

import { failureOf, HttpError } from '../errors.ts'
import { clientNetwork } from './client-network.ts'

/** Events that operators must be able to reconstruct (OWASP ASVS 5.0, 16.3). */
export type AuditEvent =
  'sign-in' | 'sign-in-refused' | 'access-denied' | 'role-changed' | 'membership-changed' | 'user-changed' |
  'user-deleted' | 'users-exported' | 'registrations-exported' | 'blog-moderated' | 'blog-deleted' |
  'calendar-created' | 'calendar-deleted' | 'tokens-revoked' | 'event-deleted' | 'mentor-deleted' | 'picture-deleted' |
  'testimonial-deleted' | 'password-forgotten' | 'password-changed' | 'password-refused' | 'email-verified' |
  'email-changed' | 'profile-changed' | 'notifications-changed' | 'message-sent'

/** Details of an event. Accounts appear by id only: never put an email, a token or a password here. */
interface AuditFields {
  /** The id of the account that the event is about. */
  user?: string | null
  /** The id of the blog, event, mentor or testimonial that the event is about. */
  target?: string
  role?: string
  club?: string | null
  status?: string
  /** Names of the fields that were changed. */
  fields?: string[]
  reason?: string
  [detail: string]: unknown
}

/** Logs a line of the audit trail. `actor` is the id in the token of the request. */
export function audit ({ log, user }: FastifyRequest, event: AuditEvent, fields: AuditFields = {}) {
  log.info({ event, actor: user?.id, ...fields }, 'audit')
}

/** The names of the fields that a request changes. `changes` has no others than the service knows, as a body may. */
export function changedFields (changes: object) {
  return Object.entries(changes).filter(([, value]) => value !== undefined).map(([name]) => name)
}

/** The ways to sign in. */
export type SignInMethod = 'password' | 'provider' | 'registration'

/** Details of a sign-in that become known while it runs. */
export interface SignInAttempt {
  /** The id of the account, once it is known. */
  user?: string
  /** Whether the provider's identity has created or linked the account, or linked it and ended its password. */
  account?: 'created' | 'linked' | 'reclaimed' | null
  /** Why it is refused, where the client is not told. */
  reason?: string
}

/** Runs a sign-in and logs how it ended: with which account, or why it was refused. */
export async function auditSignIn<T> (
  request: FastifyRequest, method: SignInMethod, signIn: (attempt: SignInAttempt) => Promise<T>
): Promise<T> {
  const attempt: SignInAttempt = {}
  const network = clientNetwork(request.ip)
  try {
    const response = await signIn(attempt)
    audit(request, 'sign-in', { method, network, ...attempt })
    return response
  } catch (error) {
    const { message } = error instanceof HttpError ? error : failureOf(request.routeOptions.config).body
    audit(request, 'sign-in-refused', { method, network, reason: message, ...attempt })
    throw error
  }
}

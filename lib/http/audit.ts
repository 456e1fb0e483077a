import type { TObject } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'

import { failureOf, HttpError } from './errors.ts'

/** Events that operators must be able to reconstruct (OWASP ASVS 5.0, 16.3). */
export type AuditEvent =
  'sign-in' | 'sign-in-refused' | 'access-denied' | 'role-changed' | 'membership-changed' | 'user-changed' |
  'user-deleted' | 'users-exported' | 'registrations-exported' | 'blog-moderated' | 'blog-deleted' |
  'calendar-created' | 'calendar-deleted' | 'tokens-revoked' | 'event-deleted' | 'mentor-deleted' | 'picture-deleted' |
  'registration-deleted' | 'testimonial-deleted' | 'club-changed' | 'office-changed' | 'password-forgotten' |
  'password-changed' | 'password-refused' | 'email-verified' | 'email-changed' | 'profile-changed' |
  'notifications-changed' | 'message-sent' | 'draw-set' | 'seats-drawn'

/**
 * Logs an audit event. `actor` is the user id in the token of the request, `user` the id of the affected account, and
 * `target` the id of a different affected object. No field may contain an email address, a token or a password.
 */
export function audit ({ log, user }: FastifyRequest, event: AuditEvent, fields: Record<string, unknown> = {}) {
  log.info({ event, actor: user?.id, ...fields }, 'audit')
}

/** Returns the names of the fields that a body changes. A body may contain others, which its schema does not know. */
export function changedFields (body: object, schema: TObject) {
  return Object.keys(schema.properties).filter(name => name in body)
}

/** Details of a sign-in that become known during it. */
export interface SignInAttempt {
  /** The id of the account, once it is known. */
  user?: string
  /** Whether the identity created the account, linked it, or linked it and removed its password. */
  account?: 'created' | 'linked' | 'reclaimed' | null
  /** The reason of a refusal, if the response does not contain it. */
  reason?: string
}

/** Runs a sign-in and logs its outcome: the account, or the reason of the refusal. */
export async function auditSignIn<T> (
  request: FastifyRequest, method: 'password' | 'provider' | 'registration',
  signIn: (attempt: SignInAttempt) => Promise<T>
): Promise<T> {
  const attempt: SignInAttempt = {}
  const { network } = request
  try {
    const response = await signIn(attempt)
    audit(request, 'sign-in', { method, network, ...attempt })
    return response
  } catch (error) {
    const { message } = error instanceof HttpError ? error : failureOf(request.routeOptions.config).body
    const reason = request.isWanted() ? message : 'The client did not wait'
    audit(request, 'sign-in-refused', { method, network, reason, ...attempt })
    throw error
  }
}

import { randomBytes } from 'node:crypto'

import cookie, { type CookieSerializeOptions, type ParseOptions } from '@fastify/cookie'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import postgres from 'postgres'

import { createAccount, type NewAccount } from '../../lib/accounts/accounts.ts'
import { auditSignIn, type SignInAttempt } from '../../lib/http/audit.ts'
import { type Identity, IdentityProvider } from '../../lib/auth/identity-provider.ts'
import { chooseFrontend, decodeState, encodeState } from '../../lib/auth/oauth-state.ts'
import { hashPassword, verifyPassword } from '../../lib/auth/passwords.ts'
import {
  consume, consumeAccountEmail, failedSignInsForAccount, failedSignInsOfNetwork, forgetUses, limitFailures,
  type RateLimit, rememberNetwork,
} from '../../lib/auth/rate-limits.ts'
import { PER_CONNECTION } from '../../lib/database/pools.ts'
import { emailTo } from '../../lib/email/emails.ts'
import { HttpError, RefusedError } from '../../lib/http/errors.ts'
import { picturesUrlOf } from '../../lib/pictures/urls.ts'
import { deriveKey } from '../../lib/config/secret-file.ts'
import { HASHING_SECONDS, PROVIDER_SECONDS } from '../../lib/config/timeout.ts'
import { findCredentials, profileQuery, signInWithIdentity } from './queries.ts'
import * as schemas from './schemas.ts'

/** A nonce: 16 random bytes, base64url. */
const NONCE = /^[\w-]{22}$/

/** Sign-up, sign-in with a password or an identity provider, and the signed-in user. */
const auth: FastifyPluginAsyncTypebox = async app => {
  // Values stay as they are: the nonce needs no decoding, and each value that cannot be decoded would take 10 µs.
  const parseOptions: ParseOptions & CookieSerializeOptions = { decode: value => value }
  await app.register(cookie, { parseOptions })
  const { SIGN_IN_ATTEMPTS, SIGN_IN_ATTEMPTS_PER_NETWORK, LIMIT_WINDOW: windowSeconds } = app.config
  const { REGISTRATIONS_PER_NETWORK } = app.config
  const { IDP_CLIENT_ID, IDP_CLIENT_SECRET, IDP_REDIRECT_URI } = app.config
  // Preloads the module, because a failed import during an update would persist until the next start.
  if (IDP_CLIENT_ID && IDP_CLIENT_SECRET && IDP_REDIRECT_URI) await import('../../lib/auth/oauth2-client.ts')
  const idp = new IdentityProvider(app.config, app.log, deriveKey(app.jwtSecret, 'code verifiers'))

  app.post('/register', {
    schema: schemas.register,
    config: { failure: 'Registration failed', extraSeconds: HASHING_SECONDS },
  }, async (request, reply) => auditSignIn(request, 'registration', async attempt => {
    const registrations: RateLimit = {
      name: 'registrations',
      key: request.network,
      max: REGISTRATIONS_PER_NETWORK,
      message: schemas.TOO_MANY_REGISTRATIONS,
    }
    const { email, firstName, lastName } = request.body
    const password = await app.queues.passwords.run(request, async () => {
      // Not earlier, so that a refusal does not count.
      await consume(app.sql, registrations, windowSeconds)
      return hashPassword(request.body.password)
    })
    const user = await createWithEmail(request, { email, password, firstName, lastName, role: 'STUDENT' })
    if (!user) throw new HttpError(409, 'User already exists')
    attempt.user = user.id
    reply.code(201)
    return { user, token: app.issueToken(user) }
  }))

  app.post('/login', {
    schema: schemas.login,
    config: { failure: 'Login failed', extraSeconds: HASHING_SECONDS },
  }, async request => auditSignIn(request, 'password', async attempt => {
    const { email, password } = request.body
    if (!password) throw new HttpError(400, 'All fields are required')
    const { network } = request
    const user = await findCredentials(app.sql, email)
    attempt.user = user?.userId
    const failures = failedSignInsForAccount(email, network, SIGN_IN_ATTEMPTS)
    const ofNetwork = failedSignInsOfNetwork(user?.userId, network, SIGN_IN_ATTEMPTS_PER_NETWORK)
    const verified = await limitFailures(app.sql, [failures, ofNetwork], windowSeconds, () =>
      app.queues.passwords.run(request, () => verifyPassword(user?.password, password)))
    if (!user || !verified) {
      attempt.reason = user ? 'Wrong password' : 'Unknown email'
      throw new HttpError(401, 'Invalid credentials')
    }
    await Promise.all([forgetUses(app.sql, failures), rememberNetwork(app.sql, user.userId, network)])
      .catch(err => request.log.error({ err }, 'Cannot forget failed sign-ins, or remember the network'))
    return { user, token: app.issueToken({ id: user.userId, role: user.role, epoch: user.epoch }) }
  }))

  app.get('/me', {
    onRequest: [forbidStoring, app.authenticate],
    schema: schemas.me,
    config: {
      failure: 'Internal server error', cache: 'private', cacheControl: 'no-store, no-cache, must-revalidate, private',
    },
  }, async (request, reply) => {
    reply.header('vary', [reply.getHeader('vary'), 'Authorization, Cookie'].filter(Boolean).join(', '))
    const isUser = await reply.sendCached(profileQuery, request.user.id, picturesUrlOf(app.config, request))
    if (!isUser) throw new HttpError(401, 'Unauthorized')
  })

  app.post('/google', {
    schema: schemas.google,
    config: { failure: { status: 401, body: { message: 'IdP login failed' } }, extraSeconds: PROVIDER_SECONDS },
  }, async request => auditSignIn(request, 'provider', async attempt => {
    const { idToken } = Object(request.body) as { idToken?: unknown }
    if (!idToken) throw new HttpError(400, 'idToken is required')
    if (!app.config.IDP_CLIENT_ID) {
      throw new HttpError(500, 'IdP client not configured', {
        fields: {
          missingVariable: 'IDP_CLIENT_ID',
          details: 'Set IDP_CLIENT_ID to the client id given by the identity provider',
        },
      })
    }
    if (typeof idToken !== 'string') throw new RefusedError('The ID token is not a string')
    const { email, ...identity } = await idp.verifyIdToken(idToken)
    if (!email) throw new HttpError(401, 'Invalid IdP token')
    return signIn(request, attempt, { ...identity, email })
  }))

  app.get<{ Querystring: { redirect?: unknown } }>('/google/start', {
    schema: schemas.googleStart,
    config: { failure: 'Failed to start IdP OAuth', extraSeconds: PROVIDER_SECONDS },
  }, async ({ query, headers, cookies }, reply) => {
    const required = ['IDP_CLIENT_ID', 'IDP_CLIENT_SECRET', 'IDP_REDIRECT_URI'] as const
    const missingVariables = required.filter(name => !app.config[name])
    if (missingVariables.length > 0) {
      throw new HttpError(500, 'IdP OAuth not configured', {
        fields: {
          missingVariables, details: `Set ${missingVariables.join(', ')} as registered with the identity provider`,
        },
      })
    }
    const origin = chooseFrontend(app.config.FRONTEND_URL, headers.origin, headers.referer)
    // Without this check, the sign-in would fail only after people return from the provider.
    if (!origin) throw new Error('FRONTEND_URL is not set')
    // A sign-in in another tab of this browser uses the same cookie.
    const { oauth_state_nonce: begun = '' } = cookies
    const nonce = NONCE.test(begun) ? begun : randomBytes(16).toString('base64url')
    const url = await idp.authorizationUrl(encodeState({
      n: nonce,
      r: typeof query.redirect === 'string' ? query.redirect : '/',
      o: origin,
    }), nonce)
    reply.setCookie('oauth_state_nonce', nonce, {
      path: '/', maxAge: 600, sameSite: 'lax', secure: app.config.NODE_ENV === 'production',
    })
    return reply.redirect(url)
  })

  app.get<{ Querystring: { code?: unknown, state?: unknown } }>('/google/callback', {
    schema: schemas.googleCallback,
    config: { failure: 'OAuth callback failed', plainTextErrors: true, extraSeconds: PROVIDER_SECONDS },
  }, async (request, reply) => auditSignIn(request, 'provider', async attempt => {
    const { query: { code, state }, cookies } = request
    if (!code || typeof code !== 'string' || !state || typeof state !== 'string') {
      throw new HttpError(400, 'Missing code/state')
    }
    const { n, r, o } = decodeState(state)
    if (!n || n !== cookies.oauth_state_nonce) throw new HttpError(400, 'Invalid state')
    const frontend = app.config.FRONTEND_URL.find(origin => origin === o) ?? app.config.FRONTEND_URL[0]
    if (!frontend) throw new HttpError(500, 'Frontend URL not configured')
    const identity = await app.queues.provider.run(request, () => identify(code, n))
    const { token } = await signIn(request, attempt, identity)
    return reply.redirect(
      `${frontend}/auth/callback?token=${encodeURIComponent(token)}&to=${encodeURIComponent(r)}`
    )
  }))

  /**
   * Creates an account and enqueues an email to verify the address. If a limit is reached or enqueuing fails, creates
   * only the account: `POST /me/email/verification` can send the email later.
   */
  async function createWithEmail ({ network, log }: FastifyRequest, account: NewAccount) {
    if (!app.outbox.canLink) return createAccount(app.sql, account)
    try {
      await consumeAccountEmail(app.sql, account.email, network, windowSeconds)
      const created = app.sql`SELECT id FROM created`
      const emailed = app.outbox.enqueue('email-verification', emailTo(app.sql, created), network)
      return await createAccount(app.sql, account, emailed)
    } catch (error) {
      if (error instanceof postgres.PostgresError) log.error({ err: error }, 'Cannot enqueue a verification email')
      // After any other error than a reached limit, the account may exist.
      else if (!(error instanceof HttpError)) throw error
      return createAccount(app.sql, account)
    }
  }

  /** Signs in a person whom the identity provider has identified. */
  async function signIn (request: FastifyRequest, attempt: SignInAttempt, identity: Identity & { email: string }) {
    const user = await app.queues.operations.run(request, () =>
      signInWithIdentity(app.sql, app.outbox, identity), PER_CONNECTION)
    Object.assign(attempt, { user: user.userId, account: user.account })
    return { user, token: app.issueToken({ id: user.userId, role: user.role, epoch: user.epoch }) }
  }

  /** Exchanges the code of a sign-in with this nonce for the identity. */
  async function identify (code: string, nonce: string) {
    const { accessToken, subject } = await idp.exchangeCode(code, nonce)
    if (!accessToken) throw new HttpError(401, 'No access token')
    const identity = await idp.fetchIdentity(accessToken, subject)
    if (!identity) throw new HttpError(401, 'Failed to fetch userinfo')
    const { email } = identity
    if (!email) throw new HttpError(401, 'No email in profile')
    return { ...identity, email }
  }
}

/** Also prevents HTTP/1.0 caches from storing the response. The route sets `Cache-Control`. */
async function forbidStoring (_request: FastifyRequest, reply: FastifyReply) {
  reply.headers({ pragma: 'no-cache', expires: '0' })
}

export default auth

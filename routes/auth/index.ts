import { randomBytes } from 'node:crypto'

import cookie from '@fastify/cookie'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'

import { createAccount } from '../../lib/auth/accounts.ts'
import { auditSignIn, type SignInAttempt } from '../../lib/http/audit.ts'
import { clientNetwork } from '../../lib/http/client-network.ts'
import { HttpError } from '../../lib/errors.ts'
import { type Identity, IdentityProvider } from '../../lib/auth/identity-provider.ts'
import { chooseFrontend, decodeState, encodeState } from '../../lib/auth/oauth-state.ts'
import { hashNetwork, rememberNetwork } from '../../lib/auth/known-networks.ts'
import { assertNotBusy, verifyPassword } from '../../lib/auth/passwords.ts'
import { networkLimits, type RateLimit, takeUse, throwIfReached, waitFor } from '../../lib/auth/rate-limits.ts'
import { TOO_MANY_FAILURES } from '../../lib/schemas.ts'
import { deriveKey, jwtSecretOf } from '../../lib/secret-file.ts'
import { HASHING_SECONDS, PROVIDER_SECONDS } from '../../lib/timeout.ts'
import { findCredentials, forgetFailures, profileQuery, signInWithIdentity } from './queries.ts'
import * as schemas from './schemas.ts'

/** Accounts: registration, sign-in with a password or an identity provider, and the signed-in user. */
const auth: FastifyPluginAsyncTypebox = async app => {
  await app.register(cookie)
  const {
    SIGN_IN_ATTEMPTS, SIGN_IN_ATTEMPTS_PER_NETWORK, SIGN_IN_WINDOW: windowSeconds, REGISTRATIONS_PER_NETWORK,
  } = app.config
  const secret = await jwtSecretOf(app.config)
  const networkKey = deriveKey(secret, 'known networks')
  const idp = new IdentityProvider(app.config, app.log, deriveKey(secret, 'code verifiers'))

  app.post('/register', {
    schema: schemas.register,
    config: { failure: 'Registration failed', extraTime: HASHING_SECONDS },
  }, async (request, reply) => auditSignIn(request, 'registration', async attempt => {
    const network = clientNetwork(request.ip)
    const subscriber = clientNetwork(request.ip, 48)
    await assertNotBusy(subscriber)
    const registrations = networkLimits('registrations', request.ip, REGISTRATIONS_PER_NETWORK)
    throwIfReached(schemas.TOO_MANY_REGISTRATIONS, await takeUse(app.sql, registrations, windowSeconds))
    // Past this limit the account is there without the mail: POST /me/email/verification sends it later.
    const mails = networkLimits('account-mails', request.ip, SIGN_IN_ATTEMPTS_PER_NETWORK)
    const verify = app.mail.canLink && await takeUse(app.sql, mails, windowSeconds) === 0
    const user = await createAccount(app.sql, { ...request.body, role: 'STUDENT' }, subscriber, verify)
    if (!user) throw new HttpError(409, 'User already exists')
    attempt.user = user.id
    await rememberNetwork(app.sql, user.id, hashNetwork(networkKey, user.email, network))
    reply.code(201)
    return { user, token: app.issueToken(user) }
  }))

  app.post('/login', {
    schema: schemas.login,
    config: { failure: 'Login failed', extraTime: HASHING_SECONDS },
  }, async request => auditSignIn(request, 'password', async attempt => {
    const { email, password } = request.body
    if (!password) throw new HttpError(400, 'All fields are required')
    const network = clientNetwork(request.ip)
    const subscriber = clientNetwork(request.ip, 48)
    await assertNotBusy(subscriber)
    const ofAccount: RateLimit = {
      name: 'failed-sign-ins-for-account', key: `${email} ${network}`, max: SIGN_IN_ATTEMPTS,
    }
    const ofNetwork = networkLimits('failed-sign-ins', request.ip, SIGN_IN_ATTEMPTS_PER_NETWORK)
    const networkHash = hashNetwork(networkKey, email, network)
    const { waitSeconds, account: user } =
      await findCredentials(app.sql, { email, networkHash }, [ofAccount, ...ofNetwork], windowSeconds)
    attempt.user = user?.userId
    throwIfReached(TOO_MANY_FAILURES, waitSeconds)
    const verified = await verifyPassword(user?.password, password, subscriber)
    const limits = user?.known ? [ofAccount] : [ofAccount, ...ofNetwork]
    // Past a limit, which others may have reached meanwhile, the response does not tell whether the password was right.
    throwIfReached(TOO_MANY_FAILURES, verified
      ? await forgetFailures(app.sql, ofAccount, limits, windowSeconds)
      : await takeUse(app.sql, limits, windowSeconds))
    if (!user || !verified) {
      attempt.reason = user ? 'Wrong password' : 'Unknown email'
      throw new HttpError(401, 'Invalid credentials')
    }
    if (!user.knownToday) await rememberNetwork(app.sql, user.userId, networkHash)
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
    if (!await reply.cached(profileQuery, request.user.id)) throw new HttpError(401, 'Unauthorized')
  })

  app.post('/google', {
    schema: schemas.google,
    config: { failure: { status: 401, body: { message: 'IdP login failed' } }, extraTime: PROVIDER_SECONDS },
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
    const { email, ...identity } = await idp.verifyIdToken(String(idToken))
    if (!email) throw new HttpError(401, 'Invalid IdP token')
    return signIn(request, attempt, { ...identity, email })
  }))

  app.get<{ Querystring: { redirect?: unknown } }>('/google/start', {
    schema: schemas.googleStart,
    config: { failure: 'Failed to start IdP OAuth', extraTime: PROVIDER_SECONDS },
  }, async ({ query, headers }, reply) => {
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
    // People would be sent away for a sign-in that fails when they come back.
    if (!origin) throw new Error('FRONTEND_URL is not set')
    const nonce = randomBytes(16).toString('base64url')
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
    config: { failure: 'OAuth callback failed', plainTextErrors: true, extraTime: PROVIDER_SECONDS },
  }, async (request, reply) => auditSignIn(request, 'provider', async attempt => {
    const { query: { code, state }, cookies } = request
    if (!code || typeof code !== 'string' || !state || typeof state !== 'string') {
      throw new HttpError(400, 'Missing code/state')
    }
    const { n, r = '/', o } = decodeState(state)
    if (!n || n !== cookies.oauth_state_nonce) throw new HttpError(400, 'Invalid state')
    const frontend = app.config.FRONTEND_URL.find(origin => origin === o) ?? app.config.FRONTEND_URL[0]
    if (!frontend) throw new HttpError(500, 'Frontend URL not configured')

    const failures = networkLimits('failed-callbacks', request.ip, SIGN_IN_ATTEMPTS_PER_NETWORK)
    throwIfReached(TOO_MANY_FAILURES, await waitFor(app.sql, failures, windowSeconds))
    const identity = await identify(code, n).catch(async error => {
      await takeUse(app.sql, failures, windowSeconds)
      throw error
    })
    const { token } = await signIn(request, attempt, identity)
    return reply.redirect(
      `${frontend}/auth/callback?token=${encodeURIComponent(token)}&to=${encodeURIComponent(r)}`
    )
  }))

  /** Signs in the account of a person whom the provider knows. */
  async function signIn ({ ip }: FastifyRequest, attempt: SignInAttempt, identity: Identity & { email: string }) {
    const user = await signInWithIdentity(app.sql, identity, app.mail.canLink)
    Object.assign(attempt, { user: user.userId, account: user.account })
    await rememberNetwork(app.sql, user.userId, hashNetwork(networkKey, user.email, clientNetwork(ip)))
    return { user, token: app.issueToken({ id: user.userId, role: user.role, epoch: user.epoch }) }
  }

  /** The identity that the provider returns for this code, to the sign-in that began with this nonce. */
  async function identify (code: string, nonce: string) {
    const accessToken = await idp.exchangeCode(code, nonce)
    if (!accessToken) throw new HttpError(401, 'No access token')
    const identity = await idp.fetchIdentity(accessToken)
    if (!identity) throw new HttpError(401, 'Failed to fetch userinfo')
    const { email } = identity
    if (!email) throw new HttpError(401, 'No email in profile')
    return { ...identity, email }
  }
}

/** Forbids caches of HTTP/1.0 to store the response, too. Its `Cache-Control` is that of the route. */
async function forbidStoring (_request: FastifyRequest, reply: FastifyReply) {
  reply.headers({ pragma: 'no-cache', expires: '0' })
}

export default auth

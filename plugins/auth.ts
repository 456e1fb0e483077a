import jwt, { type FastifyJWT } from '@fastify/jwt'
import type { FastifyRequest, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { LRUCache } from 'lru-cache'

import { HttpError } from '../lib/http/errors.ts'
import type { Role } from '../lib/values/roles.ts'
import { isUuid } from '../lib/values/formats.ts'
import { INVALID_TOKEN, Message, Named, type RefusingHook } from '../lib/values/schemas.ts'
import { jwtSecretOf } from '../lib/config/secret-file.ts'
import { withTimeout } from '../lib/config/timeout.ts'

declare module '@fastify/jwt' {
  interface FastifyJWT {
    /**
     * `sub` is the user id (RFC 7519, § 4.1.2). Apps that decode tokens expect it as `userId`. `epoch` exists if tokens
     * of the user have been revoked.
     */
    payload: { sub: string, userId: string, role: Role, epoch?: string }
    /**
     * `id` is empty if a valid token has no subject. `issuedAt` and `expiresAt` are in seconds since 1970, 0 and
     * Infinity if unknown.
     */
    user: { id: string, role: Role, epoch?: string, issuedAt: number, expiresAt: number }
  }
}

/**
 * An onRequest hook that requires a valid token and, if roles are given, one of them. The plugin checks for a
 * revocation after the body has arrived, because a client could delay its body until its token is revoked.
 */
interface Guard extends RefusingHook {
  (request: FastifyRequest): Promise<void>
  roles: readonly Role[]
}

/** Returns the guard of a route; `undefined` for public routes. */
export function guardOf ({ onRequest }: Pick<RouteOptions, 'onRequest'>) {
  return [onRequest].flat().find((hook): hook is Guard => hook !== undefined && 'roles' in hook)
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The secret that signs tokens, from which the keys for other purposes are derived. */
    jwtSecret: string
    /** Requires a valid token that has not been revoked, else 401. Sets `request.user` from its claims. */
    authenticate: Guard
    /** Creates the same hook for these roles. Other roles get a 403, even if their token has been revoked. */
    requireRole (...roles: Role[]): Guard
    /** Returns the claims of a token; `undefined` if it is invalid. */
    verifyToken (token: string): FastifyJWT['user'] | undefined
    /** Tells whether the token with these claims was revoked before the request arrived. */
    isRevoked (request: FastifyRequest, user: FastifyJWT['user']): Promise<boolean>
    /**
     * Signs an application token for a user, valid for JWT_EXPIRES_IN. Pass the epoch that was read with the user's
     * credentials, so that a revocation in between also revokes the new token.
     */
    issueToken (user: { id: string, role: Role, epoch?: string | null }): string
    /**
     * Signs a token with these claims and the current role of the user. The new token expires and is revoked together
     * with the old token, and does not count as a new sign-in.
     */
    renewToken (claims: FastifyJWT['user'], role: Role): string
  }
}

/** The claims of a verified token, which an operator may have signed. */
type Claims = Omit<FastifyJWT['payload'], 'sub'> & { sub?: unknown, iat?: number, exp?: number }

const TokenRequired = Named('TokenRequired', Message('Access token required', INVALID_TOKEN))
const Forbidden = Named('Forbidden', Message('Forbidden'))

/** Number of cached verified tokens. Without the cache, each request with a token would take 10 µs longer. */
const CACHED_TOKENS = 10_000

/** Maximum number of characters of a token. Issued tokens have less than 400, but an operator may sign others. */
const MAX_TOKEN = 1024

/**
 * The form of issued tokens. The last character of an HS256 signature has two unused bits, which are zero in issued
 * tokens. Node would also accept other spellings of the same bytes, so a changed token could still work, and each
 * spelling would be an entry of the cache.
 */
const CANONICAL = /^[\w-]+\.[\w-]+\.[\w-]{42}[AEIMQUYcgkosw048]$/

/**
 * Issues and verifies tokens (HS256 only), and guards routes. @fastify/jwt alone would accept a stolen token for seven
 * days, the default of JWT_EXPIRES_IN, even if its user has changed the password.
 */
export default fp(async app => {
  const secret = await jwtSecretOf(app.config)
  app.decorate('jwtSecret', secret)
  await app.register(jwt, {
    secret,
    sign: { algorithm: 'HS256', expiresIn: app.config.JWT_EXPIRES_IN },
    // The cache of the library would also keep tokens that fail: 10,000 tokens of 15 KB would take 220 MB.
    verify: { algorithms: ['HS256'] },
  })
  // A cached token is not verified again, but its expiry is checked every time.
  const verified = new LRUCache<string, { user: FastifyJWT['user'], expires: number }>({ max: CACHED_TOKENS })

  app.decorate('verifyToken', token => {
    const cached = verified.get(token)
    if (cached && cached.expires > Date.now()) return cached.user
    try {
      if (token.length > MAX_TOKEN || !CANONICAL.test(token)) return undefined
      const { sub, role, epoch, iat = 0, exp = Infinity } = app.jwt.verify<Claims>(token)
      const claims = { issuedAt: iat, expiresAt: exp, ...epoch && { epoch } }
      const user = { id: typeof sub === 'string' ? sub : '', role, ...claims }
      // A copy, because a part of a string keeps the whole string, here the header.
      verified.set(Buffer.from(token).toString(), { user, expires: exp * 1000 })
      return user
    } catch {
      return undefined
    }
  })

  app.decorate('isRevoked', async (request, { id, epoch }) => {
    // Some tokens have no user, or an id that is not a UUID.
    if (!isUuid(id)) return false
    const { found } = await withTimeout(app.cache.readSnapshot(request, id), app.config.DATABASE_TIMEOUT)
    return found?.[id] !== undefined && found[id] !== epoch
  })

  app.addHook('onRoute', route => {
    if (!guardOf(route)) return
    if (route.config?.cache === 'public') throw new Error(`${route.url} has a guard, so config.cache must be private`)
    route.preValidation = [refuseRevoked, ...[route.preValidation ?? []].flat()]
  })

  async function refuseRevoked (request: FastifyRequest) {
    if (await app.isRevoked(request, request.user)) throw new HttpError(401, INVALID_TOKEN)
  }

  app.decorate('authenticate', guard())
  app.decorate('requireRole', guard)

  app.decorate('issueToken', ({ id, role, epoch }) =>
    app.jwt.sign({ sub: id, userId: id, role, ...epoch && { epoch } }))

  app.decorate('renewToken', ({ id, epoch, issuedAt, expiresAt }, role) => {
    const { exp } = app.jwt.decode<{ exp: number }>(app.issueToken({ id, role }))!
    const seconds = Math.floor(Math.min(expiresAt, exp) - issuedAt)
    const claims = { sub: id, userId: id, role, ...epoch && { epoch }, iat: issuedAt }
    return app.jwt.sign(claims, { expiresIn: `${seconds}s` })
  })

  function guard (...roles: Role[]): Guard {
    const responses: Guard['responses'] =
      roles.length > 0 ? { 401: TokenRequired, 403: Forbidden } : { 401: TokenRequired }
    return Object.assign(async (request: FastifyRequest) => {
      // The contract accepts any scheme word.
      const token = request.headers.authorization?.split(' ')[1]
      if (!token) throw new HttpError(401, 'Access token required')
      const user = app.verifyToken(token)
      if (!user) throw new HttpError(401, INVALID_TOKEN)
      request.user = user
      if (roles.length > 0 && !roles.includes(user.role)) throw new HttpError(403, 'Forbidden')
    }, { roles, responses })
  }
}, { name: 'auth', dependencies: ['cache'] })

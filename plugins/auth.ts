import jwt, { type FastifyJWT } from '@fastify/jwt'
import type { FastifyRequest, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'

import type { Role } from '../lib/roles.ts'
import { HttpError } from '../lib/errors.ts'
import { isUuid } from '../lib/formats.ts'
import { jwtSecretOf } from '../lib/secret-file.ts'
import { withTimeout } from '../lib/timeout.ts'

declare module '@fastify/jwt' {
  interface FastifyJWT {
    /**
     * `sub` is the id of the user (RFC 7519, § 4.1.2); apps that decode tokens expect it as `userId`. `epoch` is there
     * once tokens of the user were revoked.
     */
    payload: { sub: string, userId: string, role: Role, epoch?: string }
    /** `id` is empty when a valid token has no subject. */
    user: { id: string, role: Role, epoch?: string }
  }
}

/**
 * An onRequest hook that requires a valid token and, if it names roles, one of them. The plugin looks for a revocation
 * after the body has arrived, because a client can hold its body back until its token is revoked.
 */
export interface Guard {
  (request: FastifyRequest): Promise<void>
  roles: readonly Role[]
}

/** The guard of a route; `undefined` when the route is open to anyone. */
export function guardOf ({ onRequest }: Pick<RouteOptions, 'onRequest'>) {
  return [onRequest].flat().find((hook): hook is Guard => hook !== undefined && 'roles' in hook)
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Requires a valid token that was not revoked, else 401; sets `request.user` from its claims. */
    authenticate: Guard
    /** Makes the same hook for these roles: responds with 403 to others, also when their token was revoked. */
    requireRole (...roles: Role[]): Guard
    /** The claims of a token; `undefined` when it is not valid. */
    verifyToken (token: string): FastifyJWT['user'] | undefined
    /** Whether the token with these claims was revoked before the request arrived. */
    isRevoked (request: FastifyRequest, user: FastifyJWT['user']): Promise<boolean>
    /**
     * Signs an application token that names this user, valid for JWT_EXPIRES_IN. The epoch is that of the snapshot in
     * which the user was recognized: if the tokens are revoked before this one is issued, it is among them.
     */
    issueToken (user: { id: string, role: Role, epoch?: string | null }): string
  }
}

/** The message of the 401 for a token that is not valid, or was revoked. */
export const INVALID = 'Invalid or expired token'

/** How many verified tokens are cached. */
const CACHED_TOKENS = 10_000

/**
 * A token as it is issued. The last character of an HS256 signature has two unused bits, which are zero here; Node also
 * decodes other spellings of the same bytes.
 */
const CANONICAL = /^[\w-]+\.[\w-]+\.[\w-]{42}[AEIMQUYcgkosw048]$/

/** Tokens (HS256 only), and the hooks that guard routes by them. */
export default fp(async app => {
  await app.register(jwt, {
    secret: await jwtSecretOf(app.config),
    sign: { algorithm: 'HS256', expiresIn: app.config.JWT_EXPIRES_IN },
    // A token is verified once while it is cached; its expiry is checked every time.
    verify: { algorithms: ['HS256'], cache: CACHED_TOKENS },
  })

  app.decorate('verifyToken', token => {
    try {
      if (!CANONICAL.test(token)) return undefined
      const { sub, role, epoch } = app.jwt.verify<{ sub?: unknown, role: Role, epoch?: string }>(token)
      return { id: typeof sub === 'string' ? sub : '', role, ...epoch && { epoch } }
    } catch {
      return undefined
    }
  })

  app.decorate('isRevoked', async (request, { id, epoch }) => {
    // There are tokens without a user, or with an id of another kind.
    if (!isUuid(id)) return false
    const { found } = await withTimeout(app.cache.ask(request, id), app.config.DATABASE_TIMEOUT)
    return found?.[id] !== undefined && found[id] !== epoch
  })

  app.addHook('onRoute', route => {
    if (guardOf(route)) route.preValidation = [refuseRevoked, ...[route.preValidation ?? []].flat()]
  })

  async function refuseRevoked (request: FastifyRequest) {
    if (await app.isRevoked(request, request.user)) throw new HttpError(401, INVALID)
  }

  app.decorate('authenticate', guard())
  app.decorate('requireRole', guard)

  app.decorate('issueToken', ({ id, role, epoch }) =>
    app.jwt.sign({ sub: id, userId: id, role, ...epoch && { epoch } }))

  function guard (...roles: Role[]): Guard {
    return Object.assign(async (request: FastifyRequest) => {
      // The second segment, whatever the scheme word.
      const token = request.headers.authorization?.split(' ')[1]
      if (!token) throw new HttpError(401, 'Access token required')
      const user = app.verifyToken(token)
      if (!user) throw new HttpError(401, INVALID)
      request.user = user
      if (roles.length > 0 && !roles.includes(user.role)) throw new HttpError(403, 'Forbidden')
    }, { roles })
  }
}, { name: 'auth', dependencies: ['cache'] })

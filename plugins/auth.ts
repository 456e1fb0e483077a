import jwt, { type FastifyJWT } from '@fastify/jwt'
import type { FastifyRequest, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'

import type { Role } from '../lib/auth/accounts.ts'
import { HttpError } from '../lib/errors.ts'
import { jwtSecretOf } from '../lib/secret-file.ts'

declare module '@fastify/jwt' {
  interface FastifyJWT {
    /** `sub` is the id of the user (RFC 7519, § 4.1.2). */
    payload: { sub: string, role: Role }
    /** `id` is empty when a valid token names nobody. */
    user: { id: string, role: Role }
  }
}

/** An onRequest hook that requires a valid token and, when it names any, one of these roles. */
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
    /** Requires a valid token, else 401; sets `request.user` from its claims. */
    authenticate: Guard
    /** Makes a hook that runs `authenticate` and responds with 403 unless the role claim is one of these. */
    requireRole (...roles: Role[]): Guard
    /** The user and role in the claims of a token; `undefined` when the token is not valid. */
    verifyToken (token: string): FastifyJWT['user'] | undefined
    /** Signs an application token that names this user, valid for JWT_EXPIRES_IN. */
    issueToken (user: { id: string, role: Role }): string
  }
}

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
      const { sub, role } = app.jwt.verify<{ sub?: unknown, role: Role }>(token)
      return { id: typeof sub === 'string' ? sub : '', role }
    } catch {
      return undefined
    }
  })

  app.decorate('authenticate', Object.assign(authenticate, { roles: [] }))

  app.decorate('requireRole', (...roles) => Object.assign(async (request: FastifyRequest) => {
    await authenticate(request)
    if (!roles.includes(request.user.role)) throw new HttpError(403, 'Forbidden')
  }, { roles }))

  app.decorate('issueToken', ({ id, role }) => app.jwt.sign({ sub: id, role }))

  async function authenticate (request: FastifyRequest) {
    // The second segment, whatever the scheme word.
    const token = request.headers.authorization?.split(' ')[1]
    if (!token) throw new HttpError(401, 'Access token required')
    const user = app.verifyToken(token)
    if (!user) throw new HttpError(401, 'Invalid or expired token')
    request.user = user
  }
}, { name: 'auth' })

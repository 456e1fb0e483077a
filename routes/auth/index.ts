import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { createAccount } from '../../lib/accounts.ts'
import { HttpError } from '../../lib/http-error.ts'
import { verifyPassword } from '../../lib/passwords.ts'
import { findCredentials, findProfile } from './queries.ts'
import * as schemas from './schemas.ts'

/** Accounts: registration, sign-in, and who one is. */
const auth: FastifyPluginAsyncTypebox = async app => {
  app.post('/register', {
    schema: schemas.register,
    config: { failure: 'Registration failed' },
  }, async (request, reply) => {
    const user = await createAccount(app.sql, { ...request.body, role: 'STUDENT' })
    if (!user) throw new HttpError(409, 'User already exists')
    reply.code(201)
    return { user, token: app.issueToken(user) }
  })

  app.post('/login', {
    schema: schemas.login,
    config: { failure: 'Login failed' },
  }, async request => {
    const { email, password } = request.body
    if (!password) throw new HttpError(400, 'All fields are required')
    const user = await findCredentials(app.sql, email)
    const verified = await verifyPassword(user?.password, password)
    if (!user || !verified) throw new HttpError(401, 'Invalid credentials')
    return { user, token: app.issueToken({ id: user.userId, role: user.role }) }
  })

  app.get('/me', {
    onRequest: app.authenticate,
    schema: schemas.me,
    config: { failure: 'Internal server error' },
  }, async (request, reply) => {
    const user = await findProfile(app.sql, request.user.id)
    if (!user) throw new HttpError(401, 'Unauthorized')
    reply.header('cache-control', 'no-store, no-cache, must-revalidate, private')
    reply.header('vary', [reply.getHeader('vary'), 'Authorization, Cookie'].filter(Boolean).join(', '))
    return { user }
  })
}

export default auth

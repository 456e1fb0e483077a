import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { audit, changedFields } from '../../lib/http/audit.ts'
import { HttpError, RefusedError } from '../../lib/http/errors.ts'
import { picturesUrlOf } from '../../lib/pictures/urls.ts'
import { analyticsQuery, deleteUser, setUserRole, updateUser, usersQuery } from './queries.ts'
import * as schemas from './schemas.ts'

/** User administration, and statistics of the platform. */
const users: FastifyPluginAsyncTypebox = async app => {
  app.get('/', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.list,
    config: { failure: 'Error fetching users', cache: 'private' },
  }, async (_request, reply) => {
    await reply.sendCached(usersQuery)
  })

  app.get('/analytics', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.analytics,
    config: { failure: 'Error fetching platform analytics', cache: 'private' },
  }, async (_request, reply) => {
    await reply.sendCached(analyticsQuery)
  })

  app.put('/:id', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.update,
    config: { failure: 'Error updating user' },
  }, async request => {
    const { body: changes, params: { id } } = request
    const user = await updateUser(app.sql, app.outbox, picturesUrlOf(app.config, request), {
      id, adminId: request.user.id, changes,
    })
    if (!user) throw new HttpError(404, 'User not found')
    audit(request, 'user-changed', { user: user.id, fields: changedFields(changes, schemas.update.body) })
    if (changes.clubId !== undefined) audit(request, 'membership-changed', { user: user.id, club: changes.clubId })
    return { user, message: 'User updated successfully' as const }
  })

  app.put('/:userId/role', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.changeRole,
    config: { failure: 'Error changing role' },
  }, async request => {
    const { userId } = request.params
    if (userId === request.user.id) throw new HttpError(400, 'You cannot change your own role')
    const user = await setUserRole(app.sql, userId, request.body.newRole)
    audit(request, 'role-changed', { user: user.id, role: user.role })
    return { user, message: 'Role changed successfully' as const }
  })

  app.put('/:userId/club', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.assignClub,
    config: { failure: 'Error assigning user to club' },
  }, async request => {
    const { clubId } = request.body
    const user = await updateUser(app.sql, app.outbox, picturesUrlOf(app.config, request), {
      id: request.params.userId, adminId: request.user.id, changes: { clubId },
    })
    // The contract has no other error for an unknown user here.
    if (!user) throw new RefusedError('The user does not exist')
    audit(request, 'membership-changed', { user: user.id, club: user.clubId })
    return { user, message: 'User assigned to club successfully' as const }
  })

  app.delete('/:userId/club', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.removeFromClub,
    // The schema refuses every request, as in the contract.
  }, async () => {})

  app.delete('/:id', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.remove,
    config: { failure: 'Error deleting user', transaction: true },
  }, async request => {
    const { id } = request.params
    if (!await deleteUser(app.sql, id)) throw new HttpError(404, 'User not found')
    audit(request, 'user-deleted', { user: id })
    return { message: 'User deleted successfully' }
  })
}

export default users

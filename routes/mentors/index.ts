import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { userIdOf } from '../../lib/accounts/permissions.ts'
import { attemptOf } from '../../lib/database/idempotency.ts'
import { audit } from '../../lib/http/audit.ts'
import { HttpError } from '../../lib/http/errors.ts'
import {
  countLikes, deleteMentor, insertMentor, likedMentorsQuery, mentorsQuery, toggleLike, updateMentor,
} from './queries.ts'
import * as schemas from './schemas.ts'

/** Mentors of the clubs. Users can like them. */
const mentors: FastifyPluginAsyncTypebox = async app => {
  app.get('/', {
    schema: schemas.list,
    config: {
      failure: { status: 200, body: { mentors: [] } },
      cache: 'public',
      cacheControl: 'public, s-maxage=300, stale-while-revalidate=600',
      live: () => [mentorsQuery],
    },
  }, async (_request, reply) => {
    await reply.sendCached(mentorsQuery)
  })

  app.post<{ Params: { mentorId: string } }>('/:mentorId/like', {
    onRequest: app.authenticate,
    schema: schemas.like,
    config: { failure: 'Error toggling mentor like' },
  }, async request => {
    const { mentorId } = request.params
    const userId = userIdOf(request, 'Authentication required')
    const liked = await toggleLike(app.sql, userId, mentorId)
    if (liked === undefined) throw new HttpError(404, 'Mentor not found')
    return {
      message: liked ? 'Mentor liked successfully' : 'Mentor unliked successfully',
      liked,
      likeCount: await countLikes(app.sql, mentorId),
    }
  })

  app.get('/liked', {
    onRequest: app.authenticate,
    schema: schemas.listLiked,
    config: { failure: 'Error fetching liked mentors', cache: 'private' },
  }, async (request, reply) => {
    await reply.sendCached(likedMentorsQuery, userIdOf(request, 'Authentication required'))
  })

  app.post('/', {
    onRequest: app.requireRole('ADMIN'),
    bodyLimit: app.config.MAX_TEXT_BYTES,
    schema: schemas.create,
    config: { failure: 'Error creating mentor', transaction: true },
  }, async (request, reply) => {
    const { imageUrl, ...fields } = request.body
    if (!imageUrl) throw new HttpError(400, 'All fields are required')
    const { row: mentor } = await insertMentor(app.sql, { ...fields, imageUrl }, attemptOf(request))
    reply.code(201)
    return { mentor }
  })

  app.put('/:id', {
    onRequest: app.requireRole('ADMIN'),
    bodyLimit: app.config.MAX_TEXT_BYTES,
    schema: schemas.update,
    config: { failure: 'Error updating mentor' },
  }, async request => {
    return { mentor: await updateMentor(app.sql, request.params.id, request.body) }
  })

  app.delete('/:id', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.remove,
    config: { failure: 'Error deleting mentor' },
  }, async request => {
    await deleteMentor(app.sql, request.params.id)
    audit(request, 'mentor-deleted', { target: request.params.id })
    return { message: 'Mentor deleted successfully' }
  })
}

export default mentors

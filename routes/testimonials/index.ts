import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from '@sinclair/typebox'

import { attemptOf } from '../../lib/database/idempotency.ts'
import { audit } from '../../lib/http/audit.ts'
import { deleteTestimonial, insertTestimonial, testimonialsQuery, updateTestimonial } from './queries.ts'
import * as schemas from './schemas.ts'

/** Testimonials of former students. */
const testimonials: FastifyPluginAsyncTypebox = async app => {
  app.get('/', {
    schema: schemas.list,
    config: { failure: 'Failed to fetch testimonials', cache: 'public', cacheControl: 'no-cache', live: queryOf },
  }, async (request, reply) => {
    await reply.sendCached(...queryOf(request.query))
  })

  app.post('/', {
    onRequest: app.requireRole('ADMIN'),
    bodyLimit: app.config.MAX_TEXT_BYTES,
    schema: schemas.create,
    config: { failure: 'Failed to create testimonial', transaction: true },
  }, async (request, reply) => {
    const { row: testimonial } = await insertTestimonial(app.sql, request.body, attemptOf(request))
    reply.code(201)
    return { testimonial }
  })

  app.put('/:id', {
    onRequest: app.requireRole('ADMIN'),
    bodyLimit: app.config.MAX_TEXT_BYTES,
    schema: schemas.update,
    config: { failure: 'Failed to update testimonial' },
  }, async request => {
    return { testimonial: await updateTestimonial(app.sql, request.params.id, request.body) }
  })

  app.delete('/:id', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.remove,
    config: { failure: 'Failed to delete testimonial' },
  }, async (request, reply) => {
    await deleteTestimonial(app.sql, request.params.id)
    audit(request, 'testimonial-deleted', { target: request.params.id })
    return reply.code(204).send(null)
  })
}

/** The cached query of this list and its arguments, for the handler and for `GET /live`. */
function queryOf ({ page, limit }: Static<typeof schemas.list.querystring>) {
  // PostgreSQL refuses NaN, which becomes the 500 of the contract.
  return [
    testimonialsQuery,
    Math.max(1, parseInt(page || '1', 10)),
    Math.min(100, Math.max(1, parseInt(limit || '12', 10))),
  ] as const
}

export default testimonials

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { hashSecretToken } from '../../lib/auth/secret-tokens.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { serviceUrl } from '../../lib/http/service-url.ts'
import { blogsFeedQuery, clubCalendarQuery, eventsCalendarQuery, ownCalendarQuery } from './queries.ts'
import * as schemas from './schemas.ts'

/** Clients may store the response but must revalidate it, so that most polls get a 304. */
const CACHE_CONTROL = 'public, no-cache'

/** Feeds for calendars and feed readers. */
const feeds: FastifyPluginAsyncTypebox = async app => {
  const { FRONTEND_URL: [frontend] } = app.config
  const linkTo = (page: string) => frontend && `${frontend}/${page}`

  app.get('/events.ics', {
    schema: schemas.events,
    config: { failure: 'Error fetching calendar', cache: 'public', cacheControl: CACHE_CONTROL },
  }, async (_request, reply) => {
    await reply.sendCached(eventsCalendarQuery, linkTo('events'))
  })

  app.get<{ Params: { id: string } }>('/clubs/:id.ics', {
    schema: schemas.club,
    config: { failure: 'Error fetching calendar', cache: 'public', cacheControl: CACHE_CONTROL },
  }, async (request, reply) => {
    if (await reply.sendCached(clubCalendarQuery, linkTo('events'), request.params.id)) return
    throw new HttpError(404, 'Club not found')
  })

  // Anyone with the URL may see it, so the service caches it like public responses. Other caches must not store it.
  app.get<{ Params: { token: string } }>('/me/:token.ics', {
    schema: schemas.own,
    config: { failure: 'Error fetching calendar', cache: 'public', cacheControl: 'private, no-cache' },
  }, async (request, reply) => {
    if (await reply.sendCached(ownCalendarQuery, linkTo('events'), hashSecretToken(request.params.token))) return
    throw new HttpError(404, 'Calendar not found')
  })

  app.get('/blogs.atom', {
    schema: schemas.blogs,
    config: { failure: 'Error fetching feed', cache: 'public', cacheControl: CACHE_CONTROL },
  }, async (request, reply) => {
    const url = serviceUrl(app.config, request)
    await reply.sendCached(blogsFeedQuery, linkTo('blogs'), url && `${url}/feeds/blogs.atom`)
  })
}

export default feeds

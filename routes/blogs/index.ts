import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'

import { audit, changedFields } from '../../lib/http/audit.ts'
import { attemptOf } from '../../lib/database/idempotency.ts'
import { userIdOf } from '../../lib/accounts/permissions.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { picturesUrlOf } from '../../lib/pictures/urls.ts'
import {
  allBlogsQuery, blogsOfAuthorQuery, deleteBlog, findBlogs, insertBlog, insertDraft, publishedBlogQuery,
  publishedBlogsQuery, updateBlog,
} from './queries.ts'
import * as schemas from './schemas.ts'

/** Blog posts: members submit them, admins moderate them, anyone can read published posts. */
const blogs: FastifyPluginAsyncTypebox = async app => {
  const { MAX_BODY_BYTES } = app.config

  app.get('/', {
    schema: schemas.listPublished,
    config: {
      failure: 'Failed to fetch blogs',
      cache: 'public',
      cacheControl: 'public, s-maxage=120, stale-while-revalidate=300',
      live: (_query, picturesUrl) => [publishedBlogsQuery, picturesUrl],
    },
  }, async (request, reply) => {
    await reply.sendCached(publishedBlogsQuery, picturesUrlOf(app.config, request))
  })

  app.get<{ Params: { id: string } }>('/:id', {
    schema: schemas.read,
    config: { failure: 'Failed to fetch blog', cache: 'public', cacheControl: 'no-cache' },
  }, async (request, reply) => {
    const { id } = request.params
    const picturesUrl = picturesUrlOf(app.config, request)
    if (await reply.sendCached(publishedBlogQuery, picturesUrl, id)) return
    // In the queue of lists, because a post can have a megabyte.
    const [blog] = await app.queues.lists.run(request, () => findBlogs(app.sql, picturesUrl, id))
    if (!blog) throw new HttpError(404, 'Blog not found')
    if (blog.status !== 'PUBLISHED') {
      const user = await readerOf(request)
      if (user?.role !== 'ADMIN' && user?.id !== blog.authorId) {
        throw new HttpError(403, 'You are not allowed to view this blog')
      }
    }
    return { blog }
  })

  app.post('/submit', {
    onRequest: app.requireRole('STUDENT', 'CLUB_HEAD', 'ADMIN'),
    bodyLimit: MAX_BODY_BYTES,
    schema: schemas.submit,
    config: { failure: 'Failed to submit blog', transaction: true },
  }, async (request, reply) => {
    const { title, content, imageUrl } = request.body
    const authorId = userIdOf(request, 'Unauthorized')
    const blog = await insertDraft(
      app.sql, picturesUrlOf(app.config, request), { title, content, imageUrl, authorId }, attemptOf(request),
      request.network, app.config
    )
    reply.code(201)
    return { blog }
  })

  app.get('/me', {
    onRequest: app.requireRole('STUDENT', 'CLUB_HEAD', 'ADMIN'),
    schema: schemas.listMine,
    config: { failure: 'Failed to fetch your blogs', cache: 'private' },
  }, async (request, reply) => {
    await reply.sendCached(blogsOfAuthorQuery, userIdOf(request, 'Unauthorized'))
  })

  app.get('/admin', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.listAll,
    config: { failure: 'Failed to fetch blogs', cache: 'private' },
  }, async (_request, reply) => {
    await reply.sendCached(allBlogsQuery)
  })

  app.post('/', {
    onRequest: app.requireRole('ADMIN'),
    bodyLimit: MAX_BODY_BYTES,
    schema: schemas.create,
    config: { failure: 'Failed to create blog', transaction: true },
  }, async (request, reply) => {
    const { body, user: { id: authorId } } = request
    const { row: blog } = await insertBlog(
      app.sql, picturesUrlOf(app.config, request), { ...body, authorId }, attemptOf(request)
    )
    reply.code(201)
    return { blog }
  })

  app.put('/:id', {
    onRequest: app.requireRole('ADMIN'),
    bodyLimit: MAX_BODY_BYTES,
    schema: schemas.update,
    config: { failure: 'Failed to update blog' },
  }, async request => {
    const { body: changes, params: { id } } = request
    const blog = await updateBlog(app.sql, app.outbox, picturesUrlOf(app.config, request), {
      id, adminId: request.user.id, changes,
    })
    const fields = changedFields(changes, schemas.update.body)
    audit(request, 'blog-moderated', { target: blog.id, status: blog.status, fields })
    return { blog }
  })

  app.post('/:id/approve', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.approve,
    config: { failure: 'Failed to approve blog' },
  }, async request => {
    return { blog: await moderate(request, 'PUBLISHED') }
  })

  app.post('/:id/archive', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.archive,
    config: { failure: 'Failed to archive blog' },
  }, async request => {
    return { blog: await moderate(request, 'ARCHIVED') }
  })

  app.delete('/:id', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.remove,
    config: { failure: 'Failed to delete blog' },
  }, async request => {
    await deleteBlog(app.sql, request.params.id)
    audit(request, 'blog-deleted', { target: request.params.id })
    return { message: 'Blog deleted successfully' }
  })

  async function moderate (request: FastifyRequest & { params: { id: string } }, status: 'PUBLISHED' | 'ARCHIVED') {
    const blog = await updateBlog(app.sql, app.outbox, picturesUrlOf(app.config, request), {
      id: request.params.id, adminId: request.user.id, changes: { status },
    })
    audit(request, 'blog-moderated', { target: blog.id, status })
    return blog
  }

  /** Returns the user in the optional token of a reader. Only here must the scheme be exactly `Bearer `. */
  async function readerOf (request: FastifyRequest) {
    const { authorization } = request.headers
    const user = authorization?.startsWith('Bearer ') && app.verifyToken(authorization.split(' ')[1]!)
    return user && !await app.isRevoked(request, user) ? user : undefined
  }
}

export default blogs

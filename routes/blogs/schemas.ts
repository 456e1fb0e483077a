import { Type } from '@sinclair/typebox'

import { idempotencyErrors, idempotencyHeaders } from '../../lib/database/idempotency.ts'
import {
  Avatar, DateTime, Enum, FirstName, IdParam, LastName, Message, MessageSuchAs, NullableString, OpaqueId,
  ResponseObject, RetryAfter, TextInput, Unauthorized, UrlInput,
} from '../../lib/values/schemas.ts'

const TITLE = { examples: ['How to lose at chess'] }
const CONTENT = { examples: ['Bring out the queen first, and be surprised by what happens.'] }
const IMAGE = { examples: ['https://images.example.org/queen.png'] }

const Status = Enum(['DRAFT', 'PUBLISHED', 'ARCHIVED'], {
  title: 'BlogStatus',
  description: 'Anyone can read `PUBLISHED` posts. Only the author and admins can read other posts.',
})

const fields = {
  id: OpaqueId,
  title: Type.String(TITLE),
  content: Type.String({
    description: 'The text as it was sent. The service does not sanitize it, so your app must escape it.',
    ...CONTENT,
  }),
  imageUrl: NullableString(IMAGE),
  status: Status,
  authorId: OpaqueId,
  createdAt: DateTime,
  updatedAt: DateTime,
}
const author = { firstName: FirstName, lastName: LastName }
const Blog = ResponseObject(fields, { title: 'Blog' })
const BlogWithAuthorName = ResponseObject({
  ...fields, author: ResponseObject(author),
}, { title: 'BlogWithAuthorName' })
const BlogWithAuthor = ResponseObject({
  ...fields, author: ResponseObject({ ...author, avatar: Avatar }),
}, { title: 'BlogWithAuthor' })

const Title = TextInput({ minLength: 3, ...TITLE })
const Content = TextInput({ minLength: 20, ...CONTENT })
const Image = UrlInput(IMAGE)
const params = Type.Object({ id: IdParam('The id of the blog post.') })

export const listPublished = {
  operationId: 'listBlogs',
  summary: 'List published blog posts',
  description: 'Returns all published posts with their full content. The newest post comes first.',
  response: { 200: ResponseObject({ blogs: Type.Array(BlogWithAuthor) }) },
}

export const read = {
  operationId: 'getBlog',
  summary: 'Get a blog post',
  description: 'Anyone can read a published post. Reading a draft or an archived post requires the token of its ' +
    'author or of an admin.',
  // A token is optional.
  security: [{}, { bearerAuth: [] }] as Record<string, string[]>[],
  checkedByHandler: { params },
  response: {
    200: ResponseObject({ blog: BlogWithAuthor }),
    403: Message('You are not allowed to view this blog'),
    404: Message('Blog not found'),
  },
}

/** Error message of a submission beyond DRAFT_MB_PER_USER. */
export const tooManyDrafts = (megabytes: number) =>
  `You may have at most ${megabytes} MB of posts that are not published`

/** Error message of a submission beyond the limit of a network. */
export const TOO_MANY_DRAFTS = 'Too many posts, please try again later'

export const submit = {
  operationId: 'submitBlog',
  summary: 'Submit a blog post',
  description: 'Creates a draft. An admin decides whether to publish it. Beyond `DRAFT_MB_PER_USER`, it gets a 413.',
  headers: idempotencyHeaders,
  body: Type.Object({ title: Title, content: Content, imageUrl: Type.Optional(Image) }, { title: 'BlogSubmission' }),
  response: {
    201: ResponseObject({ blog: BlogWithAuthorName }),
    401: Unauthorized,
    ...idempotencyErrors,
    413: MessageSuchAs(tooManyDrafts(50)),
    429: { ...Message(TOO_MANY_DRAFTS), headers: RetryAfter },
  },
}

export const listMine = {
  operationId: 'listMyBlogs',
  summary: 'List your blog posts',
  description: 'Returns your posts in every status. The newest post comes first.',
  response: { 200: ResponseObject({ blogs: Type.Array(Blog) }), 401: Unauthorized },
}

export const listAll = {
  operationId: 'listAllBlogs',
  summary: 'List all blog posts',
  description: 'Returns the posts of all authors in every status. The newest post comes first.',
  response: { 200: ResponseObject({ blogs: Type.Array(BlogWithAuthorName) }) },
}

export const create = {
  operationId: 'createBlog',
  summary: 'Create a blog post',
  description: 'The signed-in user becomes the author. The default status is `DRAFT`.',
  headers: idempotencyHeaders,
  body: Type.Object({
    title: Title, content: Content, imageUrl: Type.Optional(Image), status: Type.Optional(Status),
  }, { title: 'NewBlog' }),
  response: { 201: ResponseObject({ blog: BlogWithAuthor }), ...idempotencyErrors },
}

export const update = {
  operationId: 'updateBlog',
  summary: 'Update a blog post',
  description: 'Missing fields stay unchanged. Returns 500 if the post does not exist.',
  params,
  body: Type.Partial(create.body, { title: 'BlogChanges' }),
  response: { 200: ResponseObject({ blog: BlogWithAuthor }) },
}

const moderate = {
  params,
  response: { 200: ResponseObject({ blog: Blog }) },
}

export const approve = {
  operationId: 'approveBlog',
  summary: 'Publish a blog post',
  description: 'You can publish a draft and an archived post. Returns 500 if the post does not exist.',
  ...moderate,
}

export const archive = {
  operationId: 'archiveBlog',
  summary: 'Archive a blog post',
  description: 'Removes the post from the public list but keeps it. Returns 500 if the post does not exist.',
  ...moderate,
}

export const remove = {
  operationId: 'deleteBlog',
  summary: 'Delete a blog post',
  description: 'This cannot be undone. Returns 500 if the post does not exist.',
  params,
  response: { 200: Message('Blog deleted successfully') },
}

import { Type } from '@sinclair/typebox'

import {
  Avatar, DateTime, Enum, FirstName, IdParam, LastName, Message, NullableString, OpaqueId, OPTIONAL_SIGN_IN,
  ResponseObject, RetryAfter, TextInput, UrlInput,
} from '../../lib/schemas.ts'

const TITLE = { examples: ['How to lose at chess'] }
const CONTENT = { examples: ['Bring out the queen first, and be surprised by what happens.'] }
const IMAGE = { examples: ['https://images.example.org/queen.png'] }

const Status = Enum(['DRAFT', 'PUBLISHED', 'ARCHIVED'], {
  title: 'BlogStatus',
  description: 'Anyone may read `PUBLISHED` blogs; only their author and admins read others.',
})

const fields = {
  id: OpaqueId,
  title: Type.String(TITLE),
  content: Type.String({ description: 'Stored as it was sent, not sanitized.', ...CONTENT }),
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
const params = Type.Object({ id: IdParam({ description: 'The id of the blog.' }) })

export const listPublished = {
  operationId: 'listBlogs',
  summary: 'List the published blogs',
  description: 'Newest first, with their full content.',
  response: { 200: ResponseObject({ blogs: Type.Array(BlogWithAuthor) }) },
}

export const read = {
  operationId: 'getBlog',
  summary: 'Read a blog',
  description: 'Anyone may read a published blog. Any other needs the token of its author or of an admin.',
  security: OPTIONAL_SIGN_IN,
  docsOnly: { params },
  response: {
    200: ResponseObject({ blog: BlogWithAuthor }),
    403: Message('You are not allowed to view this blog'),
    404: Message('Blog not found'),
  },
}

/** The message of a submission past the limit. */
export const TOO_MANY_SUBMISSIONS = 'Too many submissions, please try again later'

export const submit = {
  operationId: 'submitBlog',
  summary: 'Submit a blog',
  description: 'Creates a draft, which admins may publish. Operators may limit submissions per user; `Retry-After` ' +
    'is in seconds.',
  body: Type.Object({ title: Title, content: Content, imageUrl: Type.Optional(Image) }, { title: 'BlogSubmission' }),
  response: {
    201: ResponseObject({ blog: BlogWithAuthorName }),
    401: Message('Unauthorized'),
    429: { ...Message(TOO_MANY_SUBMISSIONS), headers: RetryAfter },
  },
}

export const listMine = {
  operationId: 'listMyBlogs',
  summary: 'List your own blogs',
  description: 'Of any status, newest first.',
  response: { 200: ResponseObject({ blogs: Type.Array(Blog) }), 401: Message('Unauthorized') },
}

export const listAll = {
  operationId: 'listAllBlogs',
  summary: 'List the blogs of all authors',
  description: 'Of any status, newest first.',
  response: { 200: ResponseObject({ blogs: Type.Array(BlogWithAuthorName) }) },
}

export const create = {
  operationId: 'createBlog',
  summary: 'Add a blog',
  description: 'The author is the user who is signed in. The status is `DRAFT` unless given.',
  body: Type.Object({
    title: Title, content: Content, imageUrl: Type.Optional(Image), status: Type.Optional(Status),
  }, { title: 'NewBlog' }),
  response: { 201: ResponseObject({ blog: BlogWithAuthor }) },
}

export const update = {
  operationId: 'updateBlog',
  summary: 'Change a blog',
  description: 'Fields that are left out stay as they are. Returns 500 when the blog does not exist.',
  params,
  body: Type.Object({
    title: Type.Optional(Title),
    content: Type.Optional(Content),
    imageUrl: Type.Optional(Image),
    status: Type.Optional(Status),
  }, { title: 'BlogChanges' }),
  response: { 200: ResponseObject({ blog: BlogWithAuthor }) },
}

const moderate = {
  params,
  response: { 200: ResponseObject({ blog: Blog }) },
}

export const approve = {
  operationId: 'approveBlog',
  summary: 'Publish a blog',
  description: 'From any status. Returns 500 when the blog does not exist.',
  ...moderate,
}

export const archive = {
  operationId: 'archiveBlog',
  summary: 'Archive a blog',
  description: 'Removes it from the public list and keeps it. Returns 500 when the blog does not exist.',
  ...moderate,
}

export const remove = {
  operationId: 'deleteBlog',
  summary: 'Delete a blog',
  description: 'Returns 500 when the blog does not exist.',
  params,
  response: { 200: Message('Blog deleted successfully') },
}

import { Type } from '@sinclair/typebox'

import { Answer, DateTime, Enum, Id, Message, Nullable, Text, Url } from '../../lib/schemas.ts'

const Status = Enum('DRAFT', 'PUBLISHED', 'ARCHIVED')

const scalars = {
  id: Type.String(),
  title: Type.String(),
  content: Type.String(),
  imageUrl: Nullable,
  status: Status,
  authorId: Type.String(),
  createdAt: DateTime,
  updatedAt: DateTime,
}
const Blog = Answer(scalars)
const BlogByName = Answer({
  ...scalars,
  author: Answer({ firstName: Type.String(), lastName: Type.String() }),
})
const BlogByFace = Answer({
  ...scalars,
  author: Answer({ firstName: Type.String(), lastName: Type.String(), avatar: Nullable }),
})

const Title = Text({ minLength: 3 })
const Content = Text({ minLength: 20 })
const params = Type.Object({ id: Id() })

export const listPublished = {
  response: { 200: Answer({ blogs: Type.Array(BlogByFace) }) },
}

export const read = {
  response: {
    200: Answer({ blog: BlogByFace }),
    403: Message('You are not allowed to view this blog'),
    404: Message('Blog not found'),
  },
}

export const submit = {
  body: Type.Object({ title: Title, content: Content, imageUrl: Type.Optional(Url()) }),
  response: { 201: Answer({ blog: BlogByName }), 401: Message('Unauthorized') },
}

export const listMine = {
  response: { 200: Answer({ blogs: Type.Array(Blog) }), 401: Message('Unauthorized') },
}

export const listAll = {
  response: { 200: Answer({ blogs: Type.Array(BlogByName) }) },
}

export const create = {
  body: Type.Object({
    title: Title, content: Content, imageUrl: Type.Optional(Url()), status: Type.Optional(Status),
  }),
  response: { 201: Answer({ blog: BlogByFace }) },
}

export const update = {
  params,
  body: Type.Object({
    title: Type.Optional(Title),
    content: Type.Optional(Content),
    imageUrl: Type.Optional(Url()),
    status: Type.Optional(Status),
  }),
  response: { 200: Answer({ blog: BlogByFace }) },
}

export const moderate = {
  params,
  response: { 200: Answer({ blog: Blog }) },
}

export const remove = {
  params,
  response: { 200: Message('Blog deleted successfully') },
}

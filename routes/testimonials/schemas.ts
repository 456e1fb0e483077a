import { Type } from '@sinclair/typebox'

import { Answer, DateTime, Id, Nullable, Text, UrlOrEmpty } from '../../lib/schemas.ts'

const Testimonial = Answer({
  id: Type.String(),
  name: Type.String(),
  imageUrl: Nullable,
  batchYear: Type.Integer(),
  content: Type.String(),
  createdAt: DateTime,
})

const Name = Text({ minLength: 1 })
const Content = Text({ minLength: 1 })
const BatchYear = Type.Integer({ minimum: 1900, maximum: 3000 })
const Image = UrlOrEmpty()

export const list = {
  querystring: Type.Object({ page: Type.Optional(Type.String()), limit: Type.Optional(Type.String()) }),
  response: {
    200: Answer({
      items: Type.Array(Testimonial), page: Type.Integer(), limit: Type.Integer(), total: Type.Integer(),
    }),
  },
}

export const create = {
  body: Type.Object({ name: Name, content: Content, batchYear: BatchYear, imageUrl: Type.Optional(Image) }),
  response: { 201: Answer({ testimonial: Testimonial }) },
}

export const update = {
  params: Type.Object({ id: Id() }),
  body: Type.Object({
    name: Type.Optional(Name),
    content: Type.Optional(Content),
    batchYear: Type.Optional(BatchYear),
    imageUrl: Type.Optional(Image),
  }),
  response: { 200: Answer({ testimonial: Testimonial }) },
}

export const remove = {
  params: Type.Object({ id: Id() }),
  response: { 204: Type.Null() },
}

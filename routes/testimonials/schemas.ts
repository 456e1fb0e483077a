import { Type } from '@sinclair/typebox'

import { idempotencyErrors, idempotencyHeaders } from '../../lib/database/idempotency.ts'
import {
  Count, DateTime, IdParam, NullableString, OpaqueId, PageParams, ResponseObject, TextInput,
} from '../../lib/values/schemas.ts'

const NAME = { examples: ['Grace Hopper'] }
const CONTENT = { examples: ['The best two years of my studies.'] }
const YEAR = { description: 'The year in which the person graduated.', examples: [2021] }
const IMAGE = { examples: ['https://images.example.org/grace.png'] }

const Testimonial = ResponseObject({
  id: OpaqueId,
  name: Type.String(NAME),
  imageUrl: NullableString(IMAGE),
  batchYear: Type.Integer(YEAR),
  content: Type.String(CONTENT),
  createdAt: DateTime,
}, { title: 'Testimonial' })

const params = Type.Object({ id: IdParam('The id of the testimonial.') })

export const list = {
  operationId: 'listTestimonials',
  summary: 'List testimonials',
  description: 'The newest testimonial comes first. Returns 500 if a parameter is not a number.',
  querystring: Type.Object(PageParams('The number of testimonials per page, from 1 to 100. The default is 12.')),
  response: {
    200: ResponseObject({
      items: Type.Array(Testimonial),
      page: Type.Integer({ examples: [1] }),
      limit: Type.Integer({ examples: [12] }),
      total: Count,
    }),
  },
}

export const create = {
  operationId: 'createTestimonial',
  summary: 'Create a testimonial',
  description: 'The testimonial is public at once.',
  headers: idempotencyHeaders,
  body: Type.Object({
    name: TextInput({ minLength: 1, ...NAME }),
    content: TextInput({ minLength: 1, ...CONTENT }),
    batchYear: Type.Integer({ minimum: 1900, maximum: 3000, ...YEAR }),
    imageUrl: Type.Optional(Type.String({ format: 'url-or-empty', ...IMAGE })),
  }, { title: 'NewTestimonial' }),
  response: { 201: ResponseObject({ testimonial: Testimonial }), ...idempotencyErrors },
}

export const update = {
  operationId: 'updateTestimonial',
  summary: 'Update a testimonial',
  description: 'Missing fields stay unchanged. Returns 500 if the testimonial does not exist.',
  params,
  body: Type.Partial(create.body, { title: 'TestimonialChanges' }),
  response: { 200: ResponseObject({ testimonial: Testimonial }) },
}

export const remove = {
  operationId: 'deleteTestimonial',
  summary: 'Delete a testimonial',
  description: 'This cannot be undone. Returns 500 if the testimonial does not exist.',
  params,
  response: { 204: Type.Null() },
}

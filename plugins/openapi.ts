import { STATUS_CODES } from 'node:http'

import swagger, { type SwaggerTransform } from '@fastify/swagger'
import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import type { RouteOptions } from 'fastify'
import fp from 'fastify-plugin'

import { examplesOf } from '../lib/examples.ts'
import { finishDocument } from '../lib/openapi.ts'
import { Answer, either, Message, PlainText, RetryAfter } from '../lib/schemas.ts'
import { VERSION } from '../lib/version.ts'
import { guardOf } from './auth.ts'
import { OVERLOADED } from './pending-operations.ts'

declare module 'fastify' {
  interface FastifySchema {
    /** What comes in, for the API description only: the handler itself sees to it, as the contract has it. */
    unchecked?: { body?: TObject, querystring?: TObject, params?: TObject }
  }
}

const OPERATIONS = { name: 'Operations', description: 'For whoever runs the service.' }

/** The groups of operations, by the first segment of their paths. */
const GROUPS: Record<string, { name: string, description: string }> = {
  auth: { name: 'Accounts', description: 'Registration, sign-in with a password or a provider, and who one is.' },
  blogs: { name: 'Blogs', description: 'Submitted by everybody, moderated by admins, published for all to read.' },
  clubs: { name: 'Clubs', description: 'With their members and events.' },
  events: { name: 'Events', description: 'Of the clubs, and the registrations for them.' },
  mentors: { name: 'Mentors', description: 'Of the clubs, whom users like.' },
  testimonials: { name: 'Testimonials', description: 'What former students say.' },
  users: { name: 'Users', description: 'As admins see and change them, and what the platform amounts to.' },
  livez: OPERATIONS,
  readyz: OPERATIONS,
}

const DESCRIPTION = `The service behind a student community: accounts with roles, clubs, events with registrations,
blogs that are submitted and moderated, mentors to like, testimonials, and the numbers behind it all.

Register or sign in for a token, and send it along as \`Authorization: Bearer <token>\`. It keeps its role until it
expires, also when the role was changed.

Every error is a \`{message}\` for people to read; a request that breaks its schema gets \`errors\` with it, one for
every field that is wrong. Ids are opaque, and date-times ISO 8601 in UTC.`

/** What any request may be refused with before its operation looks at it. */
const Refused = Answer({ message: Type.String({ examples: ['Request body is too large'] }) }, {
  title: 'Error',
  description: 'What cannot be read: 400 malformed, 408 too slow, 413 too large a body, 415 a body that is not JSON, ' +
    '431 too large headers.',
})

const ETag = { ETag: Type.String({ description: 'Names this version of the answer, for `If-None-Match`.' }) }

/** The headers of a request for what the client may have already. */
const Revalidation = Type.Object({
  'If-None-Match': Type.Optional(Type.String({
    description: 'The `ETag` of the answer that is at hand. A browser sends it by itself.',
  })),
})

/** Describes the API, in OpenAPI 3.1, by the schemas and options of all routes: `app.swagger()`. */
export default fp(async app => {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Community Platform',
        version: VERSION,
        description: DESCRIPTION,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: '/', description: 'The service that this description comes from' }],
      tags: [...new Set(Object.values(GROUPS))],
      components: {
        securitySchemes: {
          bearerAuth: {
            type: 'http',
            scheme: 'bearer',
            bearerFormat: 'JWT',
            description: 'The token of a registration or a sign-in.',
          },
        },
      },
    },
    convertConstToEnum: false,
    transform: describeRoute,
    transformObject: document => finishDocument((document as { openapiObject: object }).openapiObject),
  })
}, { name: 'openapi', dependencies: ['answers'] })

/** Completes what the schema of a route says by what follows from its path and its other options. */
const describeRoute: SwaggerTransform = ({ schema, url, route }) => {
  if (schema.hide) return { schema, url }
  const { unchecked, response, description, ...described } = schema
  const guard = guardOf(route)
  const roles = guard?.roles.map(role => `\`${role}\``).join(', ')
  return {
    url,
    schema: {
      security: guard ? [{ bearerAuth: [] }] : [],
      ...described,
      ...unchecked,
      ...isPublic(route) && { headers: Revalidation },
      tags: [GROUPS[url.split('/')[1]!]!.name],
      description: [description, roles && `Roles: ${roles}.`].filter(Boolean).join('\n\n'),
      response: answersOf(route),
    },
  }
}

/** Responses of public cached routes have an entity tag; see plugins/cache.ts. */
const isPublic = (route: RouteOptions) => route.config?.cache === 'public'

/** All answers of a route, those included that any route may have. */
function answersOf (route: RouteOptions) {
  const { failure, plainTextErrors, cacheControl } = route.config ?? {}
  const answers: Record<string, TSchema> = { ...route.schema!.response as object, '4XX': Refused }
  if (failure) {
    const overloaded = plainTextErrors ? PlainText(OVERLOADED) : either(Message(OVERLOADED), answers[503] as TObject)
    answers[503] = { ...overloaded, headers: RetryAfter }
  }
  if (isPublic(route)) {
    const headers = { ...ETag, ...cacheControl && { 'Cache-Control': Type.String({ examples: [cacheControl] }) } }
    answers[200] = { ...answers[200]!, headers }
    answers[304] = Type.Null({ description: 'The answer at hand is up to date.', headers: ETag })
  }
  return Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, describeAnswer(status, answer)]))
}

/** An answer as @fastify/swagger takes one that is described in full; its texts are its examples. */
function describeAnswer (status: string, answer: TSchema) {
  const { description = STATUS_CODES[status], headers, examples: _, ...schema } = answer
  if (schema.type === 'null') return { type: 'null', description, headers }

  const examples = Object.fromEntries(examplesOf(answer).map(value => [nameOf(value), { value }]))
  const texts = Object.keys(examples).map(text => `\`${text}\``).join(' or ')
  // What cannot be read at all is a 400 as well, with other texts.
  if (status === '400' && schema.properties) schema.properties = { ...schema.properties, message: Type.String() }
  return {
    description: Number(status) < 400 ? description : answer.description ?? texts,
    headers,
    content: { [schema.enum ? 'text/plain' : 'application/json']: { schema, examples } },
  }
}

/** An example goes by its text, if it has one. */
function nameOf (example: unknown) {
  return typeof example === 'string' ? example : (example as { message?: string }).message ?? 'Example'
}

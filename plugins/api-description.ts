import { STATUS_CODES } from 'node:http'

import swagger, { type SwaggerTransform } from '@fastify/swagger'
import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import type { RouteOptions } from 'fastify'
import fp from 'fastify-plugin'

import { examplesOf, ResponseObject } from '../lib/schemas.ts'
import { finishDocument } from '../lib/api-document.ts'
import { VERSION } from '../lib/config.ts'
import { guardOf } from './auth.ts'

declare module 'fastify' {
  interface FastifySchema {
    /** Input that only the API description needs: the handler checks it itself, as the contract requires. */
    docsOnly?: { body?: TObject, querystring?: TObject, params?: TObject }
  }
}

const ACCOUNT = {
  name: 'Account', description: 'Your own account: its password, its email, its data, its calendar, and its tokens.',
}
const OPERATIONS = { name: 'Operations', description: 'Probes for operators.' }

/** The groups of operations, by the first segment of their paths. */
const GROUPS: Record<string, { name: string, description: string }> = {
  auth: { name: 'Accounts', description: 'Registration, sign-in by password or provider, and the signed-in user.' },
  blogs: { name: 'Blogs', description: 'Submitted by members, moderated by admins, published for all to read.' },
  clubs: { name: 'Clubs', description: 'With their members and events.' },
  events: { name: 'Events', description: 'Of the clubs, and the registrations for them.' },
  feeds: { name: 'Feeds', description: 'Addresses that calendars and feed readers poll.' },
  exports: { name: 'Exports', description: 'Lists as files for spreadsheets.' },
  account: ACCOUNT,
  me: ACCOUNT,
  mentors: { name: 'Mentors', description: 'Mentors of the clubs; users like them.' },
  testimonials: { name: 'Testimonials', description: 'What former students say.' },
  users: { name: 'Users', description: 'Accounts, for admins, and figures about the platform.' },
  livez: OPERATIONS,
  readyz: OPERATIONS,
}

const DESCRIPTION = `The service behind a student community: accounts with roles, clubs, events with registrations,
blogs that are submitted and moderated, mentors to like, testimonials, and the numbers behind it all.

Register or sign in for a token, and send it along as \`Authorization: Bearer <token>\`. A token keeps its role
until it expires or is ended, even if the role of the account changes.

Every error is a \`{message}\` for people to read; a request that breaks its schema also gets \`errors\`, one for each
wrong field. Ids are opaque, and date-times ISO 8601 in UTC.`

/** The address of the service, and its audience. */
const SERVER = {
  url: '/',
  description: 'The service that serves this document: local, staging or production',
  'x-internal': false,
}

/** The error of any request that is refused before its operation runs. */
const Refused = ResponseObject({ message: Type.String({ examples: ['Request body is too large'] }) }, {
  title: 'Error',
  description: 'The request cannot be read: malformed (400), too slow (408), body too large (413; by default over ' +
    '1 MB for a blog, 256 KB for a club, an event, a mentor or a testimonial, 16 KB for anything else), body not ' +
    'JSON (415), headers too large (431).',
})

const ETag = { ETag: Type.String({ description: 'Identifies this version of the response, for `If-None-Match`.' }) }

/** The headers of a conditional request. */
const Revalidation = Type.Object({
  'If-None-Match': Type.Optional(Type.String({
    description: 'The `ETag` of a response that the client has. Browsers send it by themselves.',
  })),
})

/**
 * Describes the API, in OpenAPI 3.1, by the schemas and options of all routes: `app.swagger()`, served at
 * `/openapi.json` unless `API_DOCS` is false.
 */
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
      servers: [SERVER],
      tags: [...new Set(Object.values(GROUPS))],
      components: {
        securitySchemes: {
          bearerAuth: {
            type: 'http',
            scheme: 'bearer',
            bearerFormat: 'JWT',
            description: 'The token of a registration or a sign-in: signed with HS256, and verified with that ' +
              'algorithm and no other (RFC8725).',
          },
        },
      },
    },
    convertConstToEnum: false,
    transform: describeRoute,
    transformObject: document => finishDocument((document as { openapiObject: object }).openapiObject),
  })

  if (!app.config.API_DOCS) return
  // Made when it is first asked for: few starts of the service need it.
  let document: string | undefined
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    document ??= JSON.stringify(app.swagger())
    return reply.type('application/json; charset=utf-8').send(document)
  })
}, { name: 'api-description', dependencies: ['response-schemas'] })

/** Completes what the schema of a route says by what follows from its path and its other options. */
const describeRoute: SwaggerTransform = ({ schema, url, route }) => {
  if (schema.hide) return { schema, url }
  const { docsOnly, response, description, ...described } = schema
  const guard = guardOf(route)
  const roles = guard?.roles.map(role => `\`${role}\``).join(', ')
  return {
    url,
    schema: {
      security: guard ? [{ bearerAuth: [] }] : [],
      ...described,
      ...docsOnly,
      ...isPublic(route) && { headers: Revalidation },
      tags: [GROUPS[url.split('/')[1]!]!.name],
      description: [description, roles && `Roles: ${roles}.`].filter(Boolean).join('\n\n'),
      response: responsesOf(route),
    },
  }
}

/** Responses of public cached routes have an entity tag; see lib/cache/index.ts. */
const isPublic = (route: RouteOptions) => route.config?.cache === 'public'

/** All responses of a route, including those that any route may have. */
function responsesOf (route: RouteOptions) {
  const { cacheControl } = route.config ?? {}
  const responses: Record<string, TSchema> = { ...route.schema!.response as object, '4XX': Refused }
  if (isPublic(route)) {
    const headers = { ...ETag, ...cacheControl && { 'Cache-Control': Type.String({ examples: [cacheControl] }) } }
    responses[200] = { ...responses[200]!, headers }
    responses[304] = Type.Null({ description: 'The response that the client has stored is up to date.', headers: ETag })
  }
  const described = Object.entries(responses).map(([status, schema]) => [status, describeResponse(status, schema)])
  return Object.fromEntries(described)
}

/** A response with description, content and examples, as @fastify/swagger takes it; its texts are its examples. */
function describeResponse (status: string, response: TSchema) {
  const { description = STATUS_CODES[status], headers, examples: _, contentMediaType, ...schema } = response
  if (schema.type === 'null') return { type: 'null', description, headers }

  const examples = Object.fromEntries(examplesOf(response).map(value =>
    [contentMediaType ? 'Example' : nameOf(value), { value }]))
  const texts = Object.keys(examples).map(text => `\`${text}\``).join(' or ')
  // A body that is no JSON, for example, gets a 400 with a text of the framework.
  if (status === '400' && schema.properties) schema.properties = { ...schema.properties, message: Type.String() }
  return {
    description: Number(status) < 400 ? description : response.description ?? texts,
    headers,
    content: { [contentMediaType ?? (schema.enum ? 'text/plain' : 'application/json')]: { schema, examples } },
  }
}

/** An example goes by its text, if it has one. */
function nameOf (example: unknown) {
  return typeof example === 'string' ? example : (example as { message?: string }).message ?? 'Example'
}

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
    docsOnly?: {
      body?: TObject | { content: object }
      querystring?: TObject
      params?: TObject
      headers?: TObject
      /** A response that is never sent. */
      response?: Record<string, TSchema>
    }
  }
}

const YOUR_ACCOUNT = {
  name: 'Your account',
  description: 'Your password, email address, email preferences, calendar link, tokens and personal data.',
}
const OPERATIONS = { name: 'Operations', description: 'Probes for operators.' }

/** The groups of operations by the first segment of their paths, in the order in which an app needs them. */
const GROUPS: Record<string, { name: string, description: string }> = {
  auth: { name: 'Sign-in', description: 'Sign up, sign in with a password or an identity provider, and get the user.' },
  events: { name: 'Events', description: 'Events of the clubs, and registrations for them.' },
  clubs: { name: 'Clubs', description: 'Clubs with their members and events.' },
  blogs: { name: 'Blog posts', description: 'Members submit posts, admins publish them, anyone can read them.' },
  mentors: { name: 'Mentors', description: 'Mentors of the clubs. Users can like them.' },
  testimonials: { name: 'Testimonials', description: 'Words of former students.' },
  live: { name: 'Live lists', description: 'Changes of public lists while a person looks at them.' },
  pictures: { name: 'Pictures', description: 'Uploaded pictures. To upload a picture, see `POST /me/pictures`.' },
  me: YOUR_ACCOUNT,
  account: YOUR_ACCOUNT,
  feeds: { name: 'Feeds', description: 'Links for calendar apps and feed readers.' },
  users: { name: 'Users', description: 'User administration and platform statistics, for admins.' },
  exports: { name: 'Exports', description: 'Lists as files for spreadsheets.' },
  livez: OPERATIONS,
  readyz: OPERATIONS,
}

/** The first screen of the documentation, for a service at this URL. */
const introduction = (url: string) => `The service behind a student community: accounts, clubs, events, blog posts and
mentors.

**Get a token.** Sign up, or sign in with \`POST /auth/login\`. The response contains your \`token\`:

    curl ${url}/auth/register -H 'Content-Type: application/json' \\
      -d '{"email": "ada@example.org", "password": "correct horse", "firstName": "Ada", "lastName": "Lovelace"}'

**Send the token** with each request that needs it. On this page, click *Authorize* and paste the token:

    curl ${url}/auth/me -H "Authorization: Bearer $TOKEN"

If an admin changes your role, sign in again, because a token keeps its role.

**Errors** are JSON objects with a \`message\` that you can show to people. A 400 can also list each wrong field, for
example \`{"message": "Validation error", "errors": [{"path": "email", "message": "must be an email address"}]}\`. After
a 401 about the token, sign in again; a wrong password is a 401 too. After a 429 or 503, wait for the seconds in
\`Retry-After\` and send the request again. Some operations return 500 where you might expect 404 or 409, for example
for an unknown id. Their descriptions say so.

**Pages.** \`GET /events\` and \`GET /testimonials\` take \`page\` and \`limit\`. All other lists are complete.

**Dates** are ISO 8601 in UTC, for example \`2026-01-31T09:30:00.000Z\`. **Ids** are opaque strings.

**Limits.** By default, a blog post can have 1 MB, a club, an event, a mentor or a testimonial 256 KB, a picture 10 MB,
and any other body 16 KB. A larger body gets a 413. After 20 wrong passwords for an account within 15 minutes, you get a
429.

**Examples.** You can send the examples on this page as they are if your service has the data of \`npm run seed\`.`

const serverAt = (url = '/') => ({
  url,
  description: 'The service that serves this document: local, staging or production',
  'x-internal': false,
})

/** Errors of requests that are refused before an operation runs. */
const Refused = ResponseObject({ message: Type.String({ examples: ['Request body is too large'] }) }, {
  title: 'Error',
  description: 'The service could not read the request: it was malformed (400) or too slow (408), its body was too ' +
    'large (413), not JSON or encoded (415), or its headers were too large (431).',
})

const ETag = { ETag: Type.String({ description: 'Identifies this version. Send it back as `If-None-Match`.' }) }

const Revalidation = Type.Object({
  'If-None-Match': Type.Optional(Type.String({
    description: 'The `ETag` of the response that you stored. Browsers send this header automatically.',
  })),
})

/**
 * Describes the API in OpenAPI 3.1 from the schemas and options of all routes: `app.swagger()`, served at
 * `/openapi.json` unless `API_DOCS` is false.
 */
export default fp(async app => {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Community Platform',
        version: VERSION,
        description: introduction(app.config.PUBLIC_URL ?? 'http://localhost:3000'),
        contact: { name: 'The operator of this service' },
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [serverAt(app.config.PUBLIC_URL)],
      tags: [...new Set(Object.values(GROUPS))],
      components: {
        securitySchemes: {
          bearerAuth: {
            type: 'http',
            scheme: 'bearer',
            bearerFormat: 'JWT',
            description: 'The token that you get when you sign up or sign in. It is signed with HS256, and the ' +
              'service accepts only this algorithm (RFC8725).',
          },
        },
      },
    },
    convertConstToEnum: false,
    transform: describeRoute,
    transformObject: document => finishDocument((document as { openapiObject: object }).openapiObject),
  })

  if (!app.config.API_DOCS) return
  // Created on first use, because few processes need it.
  let document: string | undefined
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    document ??= JSON.stringify(app.swagger())
    return reply.type('application/json; charset=utf-8').send(document)
  })
}, { name: 'api-description', dependencies: ['response-schemas'] })

/** Completes the schema of a route with information from its path and options. */
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

/** Tells whether responses of a route have an entity tag, see lib/cache/index.ts. */
const isPublic = (route: RouteOptions) => route.config?.cache === 'public'

/** Returns all responses of a route, including responses that are common to all routes. */
function responsesOf (route: RouteOptions) {
  const { cacheControl } = route.config ?? {}
  const { docsOnly, response } = route.schema!
  const responses: Record<string, TSchema> = { ...docsOnly?.response, ...response as object, '4XX': Refused }
  if (isPublic(route)) {
    const headers = { ...ETag, ...cacheControl && { 'Cache-Control': Type.String({ examples: [cacheControl] }) } }
    responses[200] = { ...responses[200]!, headers }
    responses[304] = Type.Null({ description: 'The response that you stored is up to date.', headers: ETag })
  }
  const described = Object.entries(responses).map(([status, schema]) => [status, describeResponse(status, schema)])
  return Object.fromEntries(described)
}

/**
 * Converts a response to the format of @fastify/swagger, with description, content and examples. The messages become
 * examples, except for a single message, which the schema shows.
 */
function describeResponse (status: string, response: TSchema) {
  const { description = STATUS_CODES[status], headers, examples: _, contentMediaType, ...schema } = response
  if (schema.type === 'null') return { type: 'null', description, headers }

  const examples = Object.fromEntries(examplesOf(response).map(value =>
    [contentMediaType ? 'Example' : nameOf(value), { value }]))
  const texts = Object.keys(examples).map(text => `\`${text}\``).join(' or ')
  // Malformed JSON, for example, gets a 400 with a message from the framework.
  if (status === '400' && schema.properties) schema.properties = { ...schema.properties, message: Type.String() }
  const { message, ...others } = schema.properties ?? {}
  const isOne = message?.enum?.length === 1 && Object.keys(others).length === 0
  return {
    description: Number(status) < 400 ? description : response.description ?? texts,
    headers,
    content: {
      [contentMediaType ?? (schema.enum ? 'text/plain' : 'application/json')]: { schema, ...!isOne && { examples } },
    },
  }
}

/** Names an example by its message, if it has one. */
function nameOf (example: unknown) {
  return typeof example === 'string' ? example : (example as { message?: string }).message ?? 'Example'
}

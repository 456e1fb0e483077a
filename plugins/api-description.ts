import { readFile } from 'node:fs/promises'
import { STATUS_CODES } from 'node:http'
import { isDeepStrictEqual } from 'node:util'

import swagger from '@fastify/swagger'
import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { LRUCache } from 'lru-cache'

import { ResponseObject, textsOf } from '../lib/values/schemas.ts'
import { finishDocument } from '../lib/http/api-document.ts'
import { type Config, VERSION } from '../lib/config/config.ts'
import { pathPrefix, serviceUrl } from '../lib/http/service-url.ts'
import { guardOf } from './auth.ts'
import { Invalid } from './response-schemas.ts'

declare module 'fastify' {
  interface FastifySchema {
    /**
     * Input that the handler checks itself, as the contract requires. The API description needs it. A route ignores its
     * body unless it has this `body` or a schema for the body, see plugins/json-body.ts.
     */
    checkedByHandler?: {
      body?: TObject | { content: object }
      querystring?: TObject
      params?: TObject
      headers?: TObject
    }
    /** Responses that are described but never sent, as the contract requires. */
    neverSent?: Record<string, TSchema>
  }

  interface FastifyInstance {
    /**
     * Sends the API description as JSON, with the URL by which this client reaches the service, see `serviceUrl`. `url`
     * is the server that it names.
     */
    sendDescription (request: FastifyRequest, reply: FastifyReply, url?: string): FastifyReply
  }
}

const YOUR_ACCOUNT = {
  name: 'Your account',
  description: 'Your password, email address, email preferences, calendar link, tokens and personal data.',
}
const CLUBS = { name: 'Clubs', description: 'Clubs with their members and events.' }
const OPERATIONS = { name: 'Operations', description: 'Probes for operators.' }

/** The groups of operations by the first segment of their paths, in the order in which an app needs them. */
const GROUPS: Record<string, { name: string, description: string }> = {
  auth: { name: 'Sign-in', description: 'Sign up, sign in with a password or an identity provider, and get the user.' },
  events: { name: 'Events', description: 'Events of the clubs, and registrations for them.' },
  agenda: { name: 'Agenda', description: 'When events end, where they are, and who has a seat.' },
  clubs: CLUBS,
  'club-pages': CLUBS,
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

/** Number of cached descriptions. Only in development, a client chooses the URL. */
const CACHED_DESCRIPTIONS = 4

/** The service in the samples of the introduction. */
const SAMPLE_URL = 'http://localhost:3000'

/** Returns the first screen of the documentation, without its title. Its links lead to the guides that /docs serves. */
const readIntroduction = async (config: Config) => {
  const text = await readFile(new URL('docs/api/introduction.md', import.meta.resolve('#package.json')), 'utf8')
  return text.replace(/^# .*\n+/, '')
    .replace(/\]\(([\w-]+\.md)\)/g, (_link, name: string) => `](${pathPrefix(config)}/docs/guides/${name})`)
}

const serverAt = (url = '/') => ({
  url,
  description: 'The service that serves this document: local, staging or production',
  'x-internal': false,
})

/** Errors of requests that are refused before an operation runs. */
const Refused = {
  ...ResponseObject({ message: Type.String({ examples: ['Request body is too large'] }) }, { title: 'Error' }),
  description: 'The service could not read the request: it was malformed (400) or too slow (408), its body was too ' +
    'large (413), not JSON or encoded (415), or its headers were too large (431).',
}

/** Opens the message of a 400, because malformed JSON, for example, gets a message of the framework. */
const withOpenMessage = (schema: TSchema) => ({
  ...schema, properties: { ...schema.properties, message: Type.String({ examples: textsOf(schema) }) },
})

const ValidationError = { ...withOpenMessage(Invalid), title: 'ValidationError' }

const ETag = { ETag: Type.String({ description: 'Identifies this version. Send it back as `If-None-Match`.' }) }

const Revalidation = Type.Object({
  'If-None-Match': Type.Optional(Type.String({
    description: 'The `ETag` that you stored. Browsers send it automatically.',
  })),
})

/**
 * Describes the API in OpenAPI 3.1 from the schemas and options of all routes: `app.swagger()`, served at
 * `/openapi.json` unless `API_DOCS` is false. @fastify/swagger alone would repeat each shared schema, so that a client
 * loads 355 KB instead of 191 KB, and would omit the errors that are common to all operations.
 */
export default fp(async app => {
  const { PUBLIC_URL } = app.config
  const introduction = await readIntroduction(app.config)
  const described = new WeakMap<RouteOptions, FastifySchema>()
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Community Platform',
        version: VERSION,
        description: introduction,
        contact: { name: 'The operator of this service' },
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [serverAt(PUBLIC_URL)],
      tags: [...new Set(Object.values(GROUPS))],
      security: [{ bearerAuth: [] }],
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
    refResolver: { buildLocalReference: ({ $id }) => String($id) },
    transform: ({ schema, url, route }) => ({ url, schema: described.get(route) ?? schema }),
    transformObject: document => finishDocument((document as { openapiObject: object }).openapiObject),
  })

  // Named schemas belong to a scope without routes. Fastify would give the schemas of a scope to each of its validators
  // and serializers, and the start would take three times as long.
  await app.register(async scope => {
    app.addHook('onRoute', route => {
      if (!route.schema?.hide) described.set(route, withReferences(describeRoute(route), scope) as FastifySchema)
    })
  })

  // Fastify and Node would convert a string of 300 KB for each response.
  const bodies = new LRUCache<string, Buffer>({ max: CACHED_DESCRIPTIONS })
  app.decorate('sendDescription', (request, reply, server) => {
    const url = serviceUrl(app.config, request) ?? SAMPLE_URL
    const key = JSON.stringify([url, server])
    let body = bodies.get(key)
    if (body === undefined) {
      const { info, servers, ...document } = app.swagger() as { info: object, servers: object[] }
      body = Buffer.from(JSON.stringify({
        ...document,
        info: { ...info, description: introduction.replaceAll(SAMPLE_URL, () => url) },
        servers: server === undefined ? servers : [{ url: server }],
      }))
      bodies.set(key, body)
    }
    return reply.type('application/json; charset=utf-8').send(body)
  })
  if (!app.config.API_DOCS) return
  app.get('/openapi.json', { schema: { hide: true } }, (request, reply) => { app.sendDescription(request, reply) })
}, { name: 'api-description', dependencies: ['response-schemas'] })

/**
 * Returns a schema with references to named schemas in place of schemas with a title, and adds the named schemas to a
 * scope. Objects are open, because later versions may send further fields.
 */
function withReferences (node: unknown, scope: FastifyInstance): unknown {
  if (typeof node !== 'object' || node === null) return node
  if (Array.isArray(node)) return node.map(each => withReferences(each, scope))
  const { additionalProperties: _, ...open } = node as { additionalProperties?: false }
  const copy: Record<string, unknown> = Object.fromEntries(Object.entries(open).map(([key, value]) =>
    [key, key === 'examples' ? value : withReferences(value, scope)]))
  // In an object of properties, `title` is the schema of a field `title`.
  if (typeof copy.title !== 'string') return copy
  const { title, ...schema } = copy
  const named = { $id: title, ...schema }
  const known = scope.getSchema(title)
  if (!known) scope.addSchema(named)
  else if (!isDeepStrictEqual(known, named)) throw new Error(`Two different schemas have the name ${title}`)
  return { $ref: `${title}#` }
}

/** Completes the schema of a route with information from its path and options. */
function describeRoute (route: RouteOptions): FastifySchema {
  const { checkedByHandler, neverSent: _, description, ...described } = route.schema!
  const guard = guardOf(route)
  const roles = guard?.roles.map(role => `\`${role}\``).join(', ')
  return {
    ...!guard && { security: [] },
    ...described,
    ...checkedByHandler,
    ...isPublic(route) && { headers: Revalidation },
    tags: [GROUPS[route.url.split('/')[1]!]?.name ?? ''],
    description: [description, roles && `Roles: ${roles}.`].filter(Boolean).join('\n\n'),
    response: responsesOf(route),
  }
}

/** Tells whether responses of a route have an entity tag, see lib/cache/index.ts. */
const isPublic = (route: RouteOptions) => route.config?.cache === 'public'

/** Returns all responses of a route, including responses that are common to all routes. */
function responsesOf (route: RouteOptions) {
  const { cacheControl } = route.config ?? {}
  const { neverSent, response } = route.schema!
  const responses: Record<string, TSchema> = { ...neverSent, ...response as object, '4XX': Refused }
  if (isPublic(route)) {
    const headers = { ...ETag, ...cacheControl && { 'Cache-Control': Type.String({ examples: [cacheControl] }) } }
    responses[200] = { ...responses[200]!, headers }
    responses[304] = Type.Null({ description: 'The response that you stored is up to date.', headers: ETag })
  }
  const described = Object.entries(responses).map(([status, schema]) => [status, describeResponse(status, schema)])
  return Object.fromEntries(described)
}

/**
 * Converts a response to the format of @fastify/swagger, with description and content. An error is described by its
 * texts, or by an example if its text contains a configured limit.
 */
function describeResponse (status: string, response: TSchema) {
  const { description, headers, contentMediaType, ...schema } = response
  const { type, properties } = schema
  if (type === 'null') return { type, description, headers }
  const texts = [...textsOf(response), ...properties?.message?.examples ?? []].map(text => `\`${text}\``)
  const isError = Number(status) >= 400 && texts.length > 0
  const media = contentMediaType ?? (schema.enum ? 'text/plain' : 'application/json')
  return {
    description: description ?? (isError ? texts.join(' or ') : STATUS_CODES[status]),
    headers,
    content: { [media]: { schema: opened() } },
  }

  function opened () {
    if (response === Invalid) return ValidationError
    return status === '400' && media === 'application/json' ? withOpenMessage(schema) : schema
  }
}

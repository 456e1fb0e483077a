import type { FastifySchema, RouteOptions } from 'fastify'

import { buildApp } from '#lib/app.js'
import { guardOf } from '#plugins/auth.js'
import { createDatabase, inject, testConfig } from '../helper.ts'
import t from '../suite.ts'

interface Media {
  schema: { $ref?: string, properties?: Record<string, { enum?: string[] }> }
  examples?: Record<string, { value: unknown }>
}

interface ResponseObject {
  description: string
  headers?: Record<string, object>
  content?: Record<string, Media>
}

interface Operation {
  operationId: string
  summary: string
  description: string
  tags: string[]
  security: object[]
  parameters?: { name: string, in: string, required: boolean, description?: string }[]
  requestBody?: { required?: boolean, content: Record<string, Media> }
  responses: Record<string, ResponseObject>
}

const app = buildApp(testConfig({ DATABASE_URL: await createDatabase(t) }))
t.teardown(() => app.close())
const routes: (RouteOptions & { schema: FastifySchema })[] = []
app.addHook('onRoute', route => {
  if (route.method !== 'HEAD' && !route.schema?.hide) routes.push(route as typeof routes[number])
})
await app.ready()
const { body, headers } = await inject(app, 'GET', '/openapi.json')
const document = JSON.parse(body)

/** The operation of a route in the document, with its responses in place of references to them. */
function operationOf ({ method, url }: Pick<RouteOptions, 'method' | 'url'>): Operation {
  const operation = document.paths[url.replace(/:(\w+)/g, '{$1}')]?.[String(method).toLowerCase()]
  const responses = Object.entries<{ $ref?: string }>(operation.responses).map(([status, response]) =>
    [status, response.$ref ? document.components.responses[response.$ref.split('/').at(-1)!] : response])
  return { ...operation, responses: Object.fromEntries(responses) }
}

const operation = (method: string, url: string) => operationOf({ method, url } as RouteOptions)

t.test('GET /openapi.json returns OpenAPI 3.1 to anyone', async t => {
  t.equal(headers['content-type'], 'application/json; charset=utf-8')
  t.equal(document.openapi, '3.1.0')
  t.match(document.info, { title: 'Community Platform', version: /^\d+\.\d+\.\d+$/, license: { identifier: 'MIT' } })
  t.equal((await inject(app, 'GET', '/openapi.json')).body, body, 'the same each time')
})

t.test('Exactly the operations are described', async t => {
  const described = Object.entries<object>(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map(method => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`))
  t.strictSame(described.sort(), routes.map(({ method, url }) => `${String(method)} ${url}`).sort())
  t.equal(new Set(routes.map(route => operationOf(route).operationId)).size, routes.length, 'operationIds are unique')
  const tags = document.tags.map(({ name }: { name: string }) => name)
  for (const route of routes) {
    const { operationId, summary, tags: [tag, ...others] } = operationOf(route)
    t.match(operationId, /^[a-z][A-Za-z]+$/)
    t.match(summary, /^[A-Z].*[^.]$/, operationId)
    t.ok(tags.includes(tag), operationId)
    t.strictSame(others, [], operationId)
  }
})

t.test('Every declared response is described, with each of its texts as an example, or in its schema', async t => {
  for (const route of routes) {
    const { operationId, responses } = operationOf(route)
    const declared = Object.entries(route.schema.response as Record<string, any>)
    for (const [status, { type, properties, enum: plain, contentMediaType }] of declared) {
      const response = responses[status]
      if (!t.ok(response, `${operationId} ${status}`)) continue
      if (type === 'null') {
        t.equal(response!.content, undefined, `${operationId} ${status} has no body`)
        continue
      }
      const media = response!.content![contentMediaType ?? (plain ? 'text/plain' : 'application/json')]!
      const values = Object.values(media.examples ?? {}).map(({ value }) => value as { message?: string })
      const { $ref, properties: described } = media.schema
      const { message } = ($ref ? document.components.schemas[$ref.split('/').at(-1)!].properties : described) ?? {}
      if (message?.enum?.length === 1) values.push({ message: message.enum[0] })
      const texts: string[] = plain ?? properties?.message?.enum ?? []
      const shown = values.map(value => plain ? value : value.message)
      for (const text of texts) t.ok(shown.includes(text as never), `${operationId} ${status} ${text}`)
      t.ok(values.length > 0)
    }
  }
})

t.test('Security and roles follow from the guards', async t => {
  for (const route of routes) {
    const { operationId, security, description = '' } = operationOf(route)
    const guard = guardOf(route)
    const open = operationId === 'getBlog' ? [{}, { bearerAuth: [] }] : []
    t.strictSame(security, guard ? [{ bearerAuth: [] }] : open, operationId)
    const roles = guard?.roles.map(role => `\`${role}\``).join(', ')
    t.equal(/Roles: (.*)\.$/.exec(description)?.[1], roles || undefined, operationId)
  }
})

t.test('Parameters follow from the path, whether or not the route validates them', async t => {
  for (const route of routes) {
    const { operationId, parameters = [] } = operationOf(route)
    const path = parameters.filter(parameter => parameter.in === 'path')
    t.strictSame(path.map(({ name }) => `:${name}`), route.url.match(/:\w+/g) ?? [], operationId)
    for (const { required, description } of path) t.ok(required && description, operationId)
  }
})

t.test('docsOnly describes input that the handler validates itself', async t => {
  const bodyOf = (url: string) => operation('POST', url).requestBody?.content['application/json']?.schema
  t.strictSame(bodyOf('/clubs'), { $ref: '#/components/schemas/NewClub' })
  t.strictSame(bodyOf('/auth/google'), { $ref: '#/components/schemas/IdToken' })
  t.equal(bodyOf('/events/:eventId/register'), undefined)
  const queryOf = (url: string) => operation('GET', url).parameters?.map(({ name, required }) => [name, required])
  t.strictSame(queryOf('/auth/google/start'), [['redirect', false]])
  t.strictSame(queryOf('/auth/google/callback'), [['code', true], ['state', true]])
})

t.test('Headers and statuses that plugins add are described', async t => {
  for (const route of routes) {
    const { operationId, responses, parameters = [] } = operationOf(route)
    t.strictSame(responses['4XX']!.content!['application/json']!.schema, { $ref: '#/components/schemas/Error' })
    // An overload of GET /mentors is an empty list.
    const isLimited = route.config?.failure && operationId !== 'listMentors'
    t.equal(Boolean(responses[503]?.headers?.['Retry-After']), Boolean(isLimited), `${operationId} 503`)
    const isPublic = route.config?.cache === 'public'
    t.equal(Boolean(responses[304]?.headers?.ETag), isPublic, `${operationId} 304`)
    t.equal(Boolean(responses[200]?.headers?.ETag), isPublic, `${operationId} 200`)
    t.equal(parameters.some(({ name }) => name === 'If-None-Match'), isPublic, operationId)
  }
  const { responses } = operation('POST', '/auth/login')
  t.ok(responses[429]!.headers!['Retry-After'])
  t.equal(Object.keys(responses[503]!.content!['application/json']!.examples!).length, 2)
  t.ok(operation('GET', '/auth/google/callback').responses[503]!.content!['text/plain'])
})

t.test('The message of a 400 is open, because unreadable requests also get a 400', async t => {
  for (const route of routes) {
    const { schema } = operationOf(route).responses[400]?.content?.['application/json'] ?? {}
    if (schema) t.strictSame(schema.properties!.message, { type: 'string' })
  }
  const response = await app.inject({
    method: 'POST', url: '/auth/login', headers: { 'content-type': 'application/json' }, payload: '{',
  })
  t.equal(response.statusCode, 400)
})

t.test('No schema has a format that only this service knows', async t => {
  const formats = [...body.matchAll(/"format":"([^"]+)"/g)].map(([, format]) => format!)
  t.strictSame([...new Set(formats)].sort(), ['date-time', 'email', 'int64', 'password', 'uri'])
})

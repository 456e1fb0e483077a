import { type TSchema, Type } from '@sinclair/typebox'
import argon2 from 'argon2'
import type { FastifySchema, RouteOptions } from 'fastify'

import { guardOf } from '#plugins/auth.js'
import seed from '#lib/cli/seed.js'
import { textsOf } from '#lib/values/schemas.js'
import { bearer, build, inject, MAIL, make } from '../helper.ts'
import { call } from '../process.ts'
import t from '../suite.ts'

interface Media {
  schema: { $ref?: string, properties?: Record<string, { enum?: string[] }> }
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
  security?: object[]
  parameters?: { name: string, in: string, required: boolean, description?: string }[]
  requestBody?: { required?: boolean, content: Record<string, Media> }
  responses: Record<string, ResponseObject>
}

const { app } = await make(t)
const { DATABASE_URL } = app.config
const routes: (RouteOptions & { schema: FastifySchema })[] = []
app.addHook('onRoute', route => {
  if (route.method !== 'HEAD' && !route.schema?.hide) routes.push(route as typeof routes[number])
})
await app.ready()
const { body, headers } = await inject(app, 'GET', '/openapi.json')
const document = JSON.parse(body)
const demo = await build(t, { ...MAIL, PUBLIC_URL: 'https://api.example.org/' })

/** A part of the document, in place of a reference to it. */
const found = <T>(part: T & { $ref?: string }): T => {
  const [, kind, name] = /^#\/components\/(.*)\/(.*)$/.exec(part.$ref ?? '') ?? []
  return kind && name ? document.components[kind][name] : part
}

/** The operation of a route in the document, without references to parameters, headers and responses. */
function operationOf ({ method, url }: Pick<RouteOptions, 'method' | 'url'>): Operation {
  const operation: Operation = document.paths[url.replace(/:(\w+)/g, '{$1}')]?.[String(method).toLowerCase()]
  const responses = Object.entries(operation.responses).map(([status, response]) => [status, found(response)])
  const parameters = operation.parameters?.map(found)
  return { ...operation, ...parameters && { parameters }, responses: Object.fromEntries(responses) }
}

const operation = (method: string, url: string) => operationOf({ method, url } as RouteOptions)

/** Maximum number of bytes of a value that a schema accepts, with the UTF-8 of any script; 0 without a maximum. */
function bytesOf ({ maxLength = 0, maxItems = 0, items, properties = {}, anyOf = [] }: Record<string, any>): number {
  const sums = [4 * maxLength, items ? maxItems * bytesOf(items) : 0, ...anyOf.map(bytesOf)]
  return Math.max(...sums) + Object.values<object>(properties).reduce((sum, schema) => sum + bytesOf(schema), 0)
}

t.test('A body may be as long as its texts in any script', async t => {
  const bodies = routes.flatMap(({ url, bodyLimit, schema }) => {
    const body = schema.body ?? schema.checkedByHandler?.body
    return body ? [{ url, bodyLimit: bodyLimit ?? app.initialConfig.bodyLimit!, bytes: bytesOf(body) }] : []
  })
  t.ok(bodies.some(({ bytes }) => bytes > 16_384), 'such as the description of a club')
  for (const { url, bodyLimit, bytes } of bodies) t.ok(bytes < bodyLimit, `${bytes} of ${bodyLimit} bytes to ${url}`)
})

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

t.test('Every declared response is described, with each of its texts', async t => {
  for (const route of routes) {
    const { operationId, responses } = operationOf(route)
    for (const [status, schema] of Object.entries(route.schema.response as Record<string, TSchema>)) {
      const { type, enum: plain, contentMediaType } = schema
      const { content, description } = responses[status]!
      if (type === 'null') t.equal(content, undefined, `${operationId} ${status} has no body`)
      else t.ok(content![contentMediaType ?? (plain ? 'text/plain' : 'application/json')], `${operationId} ${status}`)
      for (const text of Number(status) < 400 ? [] : textsOf(schema)) t.match(description, `\`${text}\``, operationId)
    }
  }
})

t.test('Security and roles follow from the guards', async t => {
  for (const route of routes) {
    const { operationId, security, description = '' } = operationOf(route)
    const guard = guardOf(route)
    const open = operationId === 'getBlog' ? [{}, { bearerAuth: [] }] : []
    t.strictSame(security ?? document.security, guard ? [{ bearerAuth: [] }] : open, operationId)
    const roles = guard?.roles.map(role => `\`${role}\``).join(', ')
    t.equal(/Roles: (.*)\.$/.exec(description)?.[1], roles || undefined, operationId)
  }
})

t.test('Parameters follow from the path, whether or not the route validates them', async t => {
  for (const route of routes) {
    const { operationId, parameters = [] } = operationOf(route)
    const path = parameters.filter(parameter => parameter.in === 'path')
    t.strictSame(path.map(({ name }) => `:${name}`), route.url.match(/:\w+/g) ?? [], operationId)
    for (const { name, required, description } of path) {
      t.ok(required && description, `${operationId}: ${name} is required and described`)
    }
  }
})

t.test('checkedByHandler describes input that the handler validates itself', async t => {
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
    // An overload of GET /mentors is an empty list. Streams have a limit of their own.
    const isLimited = route.config?.isStream ?? (route.config?.failure && operationId !== 'listMentors')
    t.equal(Boolean(responses[503]?.headers?.['Retry-After']), Boolean(isLimited), `${operationId} 503`)
    const isPublic = route.config?.cache === 'public'
    t.equal(Boolean(responses[304]?.headers?.ETag), isPublic, `${operationId} 304`)
    t.equal(Boolean(responses[200]?.headers?.ETag), isPublic, `${operationId} 200`)
    t.equal(parameters.some(({ name }) => name === 'If-None-Match'), isPublic, operationId)
  }
  const { responses } = operation('POST', '/auth/login')
  t.ok(responses[429]!.headers!['Retry-After'])
  t.strictSame(responses[503]!.content!['application/json']!.schema, { $ref: '#/components/schemas/OverloadedOrBusy' })
  t.ok(operation('GET', '/auth/google/callback').responses[503]!.content!['text/plain'])
})

t.test('The message of a 400 is open, because unreadable requests also get a 400', async t => {
  for (const route of routes) {
    const { schema } = operationOf(route).responses[400]?.content?.['application/json'] ?? {}
    if (schema) t.match(found(schema).properties!.message, { type: 'string', enum: undefined, const: undefined })
  }
  const response = await app.inject({
    method: 'POST', url: '/auth/login', headers: { 'content-type': 'application/json' }, payload: '{',
  })
  t.equal(response.statusCode, 400)
})

t.test('Schemas with a title are components, and two different ones cannot share it', async t => {
  t.match(document.components.schemas.EventWithCount.properties, {
    id: { $ref: '#/components/schemas/Id' }, club: { $ref: '#/components/schemas/ClubCard' },
  })
  t.notMatch(JSON.stringify(document.components.schemas), /"(title|\$id)":"/)
  const { app } = await make(t, { DATABASE_URL })
  app.register(async app => {
    app.get('/events/x', { schema: { response: { 200: Type.Object({}, { title: 'Event' }) } } }, () => ({}))
  })
  await t.rejects(async () => app.ready(), { message: 'Two different schemas have the name Event' })
})

t.test('No schema has a format that only this service knows', async t => {
  const formats = [...body.matchAll(/"format":"([^"]+)"/g)].map(([, format]) => format!)
  t.strictSame([...new Set(formats)].sort(), ['binary', 'date-time', 'email', 'int64', 'password', 'uri'])
})

t.test('Each operation has a summary of verb and object, and a description', async t => {
  for (const route of routes) {
    const { summary, description } = operationOf(route)
    t.match(summary, /^[A-Z][a-z]+ (\w+ )*\w/, summary)
    t.match(description.replace(/\n\nRoles: .*$/, ''), /^[A-Z].*\.$/s, summary)
  }
})

t.test('The commands of the introduction contain the URL of the service, or the one of the request', async t => {
  const { description } = (await inject(demo, 'GET', '/openapi.json')).json().info
  t.match(description, 'curl https://api.example.org/auth/register')
  t.match(document.info.description, 'curl http://localhost:80/auth/register')
})

t.test('The host of a request is a text, and is ignored in production', async t => {
  const host = "$'".repeat(7500)
  const { body } = await inject(app, 'GET', '/openapi.json', undefined, { host })
  t.match(JSON.parse(body).info.description, `curl http://${host}/auth/register`)
  t.ok(body.length < 1_000_000, `${body.length} characters`)
  const production = await build(t, { DATABASE_URL: app.config.DATABASE_URL, NODE_ENV: 'production' })
  for (const header of ['host', 'x-forwarded-host']) {
    for (const path of ['/openapi.json', '/docs/json']) {
      const { body } = await inject(production, 'GET', path, undefined, { [header]: 'evil.example' })
      t.notMatch(body, 'evil.example', path)
    }
  }
})

t.test('The description is made once for each URL', async t => {
  const app = await build(t, { DATABASE_URL: demo.config.DATABASE_URL })
  const calls = t.capture(app, 'swagger', app.swagger)
  const bodies = new Set<string>()
  for (let n = 0; n < 3; n++) {
    for (const host of ['a', 'b']) bodies.add((await inject(app, 'GET', '/openapi.json', undefined, { host })).body)
  }
  t.strictSame([bodies.size, calls().length], [2, 2])
})

/** Returns an example of a schema: its first own example, or a composition of the examples of its parts. */
function exampleOf (schema: TSchema): unknown {
  const { examples, enum: words, anyOf, items, properties, const: value } = schema
  if (examples) return examples[0]
  if (words) return words[0]
  if (anyOf) return exampleOf(anyOf[0])
  if (items) return [exampleOf(items)]
  if (properties) {
    return Object.fromEntries(Object.entries<TSchema>(properties).map(([name, part]) => [name, exampleOf(part)]))
  }
  return value
}

/** Examples that cannot succeed, with the status that they get. */
const UNSENDABLE: Record<string, number> = {
  // They contain the token of an email, a link, an identity provider or a browser.
  'GET /auth/google/callback': 500,
  'GET /auth/google/start': 500,
  'GET /feeds/me/:token.ics': 404,
  'POST /account/email/verify': 400,
  'POST /account/password/reset': 400,
  'POST /account/unsubscribe/:token': 404,
  'POST /auth/google': 500,
  // Their body is a file, or an upload has to come first.
  'DELETE /me/pictures/:id': 404,
  'GET /pictures/:id': 404,
  'POST /me/pictures': 400,
  // The student of the demo data has posts and is registered, and the contract refuses the other operation.
  'DELETE /users/:id': 500,
  'DELETE /users/:userId/club': 400,
  'POST /events/:eventId/register': 400,
  // The address of the student is verified.
  'POST /me/email/verification': 409,
  // The student has deleted the account.
  'DELETE /account/:id': 404,
}

t.test('The examples can be sent as they are to a service with the demo data', async t => {
  await call(seed, { DATABASE_URL: demo.config.DATABASE_URL, ADMIN_EMAIL: '', NODE_ENV: 'test' }, {})
  const signIn = async (credentials: object) =>
    (await inject(demo, 'POST', '/auth/login', credentials)).json().token as string

  const login = routes.find(({ url }) => url === '/auth/login')!
  const student = exampleOf(login.schema.body as TSchema) as { email: string, password: string }
  const emailOf = (name: string) => `${name}@demo.example.org`
  for (const name of ['head', 'admin', 'student']) t.ok(await signIn({ ...student, email: emailOf(name) }), name)

  /** Sends the examples of an operation with a token of a role that may use it. */
  async function send (route: typeof routes[number]) {
    const roles = guardOf(route)?.roles
    const isOfClub = roles && route.url.startsWith('/club-pages')
    const role = roles?.includes('CLUB_HEAD') ? 'head' : roles?.includes('ADMIN') || isOfClub ? 'admin' : undefined
    const token = roles && await signIn(role ? { ...student, email: emailOf(role) } : student)
    const { checkedByHandler, ...schema } = route.schema
    const exampleFor = (part: 'params' | 'querystring' | 'body') => {
      const described = (schema[part] ?? checkedByHandler?.[part]) as TSchema | undefined
      return described?.properties && exampleOf(described) as Record<string, string>
    }
    const path = route.url.replace(/:(\w+)/g, (_, name: string) => exampleFor('params')![name]!)
    const query = exampleFor('querystring')
    const url = query ? `${path}?${new URLSearchParams(query)}` : path
    return inject(demo, String(route.method) as 'GET', url, exampleFor('body'), token ? bearer(token) : {})
  }

  const hash = await argon2.hash(student.password, { memoryCost: 1024, timeCost: 2, parallelism: 1 })
  const ordered = ['GET', 'POST', 'PUT', 'DELETE'].flatMap(method => routes.filter(route => route.method === method))
  const isLast = ({ method, url }: RouteOptions) => method === 'DELETE' ? ['/me', '/account/:id'].indexOf(url) : -1
  // An open stream has no end.
  const others = ordered.filter(route => !route.config?.isStream)
  for (const route of others.sort((one, other) => isLast(one) - isLast(other))) {
    await demo.sql`UPDATE users SET password = ${hash}`
    const { statusCode, body } = await send(route)
    const name = `${String(route.method)} ${route.url}`
    const expected = UNSENDABLE[name]
    t.ok(expected ? statusCode === expected : statusCode < 300, `${name}: ${statusCode} ${body.slice(0, 200)}`)
  }
})

t.test('The dates of examples lie ahead by more than a year', async t => {
  const dates = JSON.stringify(document).match(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g) ?? []
  t.ok(dates.length > 5)
  for (const date of new Set(dates)) t.ok(Date.parse(date) > Date.now() + 365 * 86_400_000, date)
})

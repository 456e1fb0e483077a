import type { TSchema } from '@sinclair/typebox'
import type { FastifySchema, RouteOptions } from 'fastify'

import { buildApp } from '#lib/app.js'
import { guardOf } from '#plugins/auth.js'
import seed from '#lib/cli/seed.js'
import { exampleOf } from '#lib/schemas.js'
import { bearer, build, createDatabase, inject, MAIL, testConfig } from '../helper.ts'
import { call } from '../process.ts'
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
    // An overload of GET /mentors is an empty list. Streams have a limit of their own.
    const isLimited = route.config?.openStreamBytes ?? (route.config?.failure && operationId !== 'listMentors')
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
  t.strictSame([...new Set(formats)].sort(), ['binary', 'date-time', 'email', 'int64', 'password', 'uri'])
})

t.test('Each operation has a summary of verb and object, and a description', async t => {
  for (const route of routes) {
    const { summary, description } = operationOf(route)
    t.match(summary, /^[A-Z][a-z]+ (\w+ )*\w/, summary)
    t.match(description.replace(/\n\nRoles: .*$/, ''), /^[A-Z].*\.$/s, summary)
  }
})

t.test('The commands of the introduction contain the URL of the service', async t => {
  const app = await build(t, { PUBLIC_URL: 'https://api.example.org/' })
  const { description } = (await inject(app, 'GET', '/openapi.json')).json().info
  t.match(description, 'curl https://api.example.org/auth/register')
  t.match(document.info.description, 'curl http://localhost:3000/auth/register')
})

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
  // The student of the demo data has posts, and the contract refuses the other operation.
  'DELETE /users/:id': 500,
  'DELETE /users/:userId/club': 400,
}

t.test('The examples can be sent as they are to a service with the demo data', async t => {
  const app = await build(t, { ...MAIL, PUBLIC_URL: 'https://api.example.org' })
  await call(seed, { DATABASE_URL: app.config.DATABASE_URL, ADMIN_EMAIL: '', NODE_ENV: 'test' }, {})
  const signIn = async (credentials: object) =>
    (await inject(app, 'POST', '/auth/login', credentials)).json().token as string

  const [register, login] = ['/auth/register', '/auth/login'].map(path => routes.find(({ url }) => url === path)!)

  /** Sends the examples of an operation with a token of a role that may use it. */
  async function send (route: typeof routes[number]) {
    const roles = guardOf(route)?.roles
    const role = roles?.includes('CLUB_HEAD') ? 'head' : roles?.includes('ADMIN') ? 'admin' : undefined
    const ada = exampleOf(login!.schema.body as TSchema) as object
    const token = roles &&
      await signIn(role ? { email: `${role}@demo.example.org`, password: 'demo-password' } : ada)
    const { docsOnly, ...schema } = route.schema
    const exampleFor = (part: 'params' | 'querystring' | 'body') => {
      const described = (schema[part] ?? docsOnly?.[part]) as TSchema | undefined
      return described?.properties && exampleOf(described) as Record<string, string>
    }
    const path = route.url.replace(/:(\w+)/g, (_, name: string) => exampleFor('params')![name]!)
    const query = exampleFor('querystring')
    const url = query ? `${path}?${new URLSearchParams(query)}` : path
    return inject(app, String(route.method) as 'GET', url, exampleFor('body'), token ? bearer(token) : {})
  }

  t.equal((await send(register!)).statusCode, 201)
  const [{ hash }] = await app.sql<[{ hash: string }]>`
    SELECT password AS hash FROM users WHERE email = 'ada@example.org'
  `
  const ordered = ['GET', 'POST', 'PUT', 'DELETE'].flatMap(method => routes.filter(route => route.method === method))
  const isLast = ({ method, url }: RouteOptions) => Number(method === 'DELETE' && ['/me', '/account/:id'].includes(url))
  // An open stream has no end.
  const others = ordered.filter(route => route !== register && !route.config?.openStreamBytes)
  for (const route of others.sort((one, other) => isLast(one) - isLast(other))) {
    await app.sql`UPDATE users SET password = ${hash} WHERE email = 'ada@example.org'`
    const { statusCode, body } = await send(route)
    const name = `${String(route.method)} ${route.url}`
    const expected = UNSENDABLE[name]
    t.ok(expected ? statusCode === expected : statusCode < 300, `${name}: ${statusCode} ${body.slice(0, 200)}`)
  }
})

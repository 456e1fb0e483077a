import { Type } from '@sinclair/typebox'
import { errorCodes, type InjectOptions } from 'fastify'

import { HttpError } from '#lib/http/errors.js'
import { createLogger } from '#lib/http/logger.js'
import { ACCOUNT } from '../fixtures.ts'
import { inject, make } from '../helper.ts'
import t from '../suite.ts'

interface Line { level: number, reqId: string, err: { message: string, stack: string } }

const lines: Line[] = []
const stream = { write (line: string) { lines.push(JSON.parse(line)) } }
// Not recorded: responses to unreadable requests come from Fastify, and no schema declares them.
const { app } = await make(t, {}, createLogger('error', stream))

/** The error that the handlers of /throw and /failure throw. */
let thrown: unknown
const requests: string[] = []

app.register(async app => {
  app.addHook('onRequest', async ({ id }) => { requests.push(id) })
  app.get('/throw', async () => { throw thrown })
  app.get('/failure', { config: { failure: 'Failed to do it' } }, async () => { throw thrown })
  app.get('/fallback', { config: { failure: { status: 200, body: { items: [] } } } }, async () => { throw thrown })
  app.get('/unsendable', { config: { failure: 'Failed to send it' } }, (_request, reply) => {
    reply.type('text/plain').send(7)
  })
  const body = Type.Object({
    name: Type.String({ minLength: 2 }),
    link: Type.Optional(Type.String({ format: 'url' })),
    day: Type.Optional(Type.String({ format: 'date' })),
    address: Type.Optional(Type.Object({ lines: Type.Array(Type.Object({ text: Type.String({ format: 'text' }) })) })),
  })
  app.post('/checked', { schema: { body } }, async ({ body }) => body)
  app.get('/checked', { schema: { querystring: Type.Object({ sort: Type.Optional(Type.String({ enum: ['asc'] })) }) } },
    async () => ({}))
})
await app.ready()

const send = (options: InjectOptions) => app.inject(options)
const json = { 'content-type': 'application/json' }

t.test('An unknown route is a 404', async t => {
  const unknown: [InjectOptions['method'], string][] = [
    ['GET', '/'],
    ['GET', '/nope'],
    ['GET', '/Auth/me'],
    ['GET', '//livez'],
    ['PATCH', '/auth/login'],
    ['OPTIONS', '/auth/login'],
    ['GET', '/auth/login'],
    ['GET', '/nope?redirect=%00'],
    // Without METRICS_TOKEN
    ['GET', '/metrics'],
  ]
  for (const [method, url] of unknown) {
    const response = await send({ method, url })
    t.equal(response.headers['content-type'], 'application/json; charset=utf-8')
    t.strictSame([response.statusCode, response.json()], [404, { message: 'Not found' }], `${method} ${url}`)
  }
})

t.test('An unreadable request gets JSON with a message and nothing else', async t => {
  const login = { method: 'POST', url: '/auth/login' } as const
  const table: [string, number, InjectOptions][] = [
    ['malformed JSON', 400, { ...login, headers: json, payload: '{"email": ' }],
    ['JSON with more behind it', 400, { ...login, headers: json, payload: '{} {}' }],
    ['blanks for JSON', 400, { ...login, headers: json, payload: ' ' }],
    ['too large a body', 413, { ...login, headers: json, payload: JSON.stringify('x'.repeat(2 ** 21)) }],
    ['text', 415, { ...login, headers: { 'content-type': 'text/plain' }, payload: JSON.stringify(ACCOUNT) }],
    ['no media type', 415, { ...login, payload: JSON.stringify(ACCOUNT) }],
    ['a broken media type', 415, { ...login, headers: { 'content-type': 'json' }, payload: '{}' }],
  ]
  for (const [what, status, options] of table) {
    const response = await send(options)
    t.equal(response.statusCode, status, what)
    t.equal(response.headers['content-type'], 'application/json; charset=utf-8', what)
    t.strictSame(Object.keys(response.json()), ['message'], what)
    t.match(response.json().message, /\w/, what)
    t.notMatch(response.body, /node_modules|\.[jt]s\b|\n +at /, 'nothing internal')
  }
})

t.test('A trailing slash makes no difference', async t => {
  t.equal((await inject(app, 'GET', '/livez/')).statusCode, 200)
  t.equal((await inject(app, 'GET', '/auth/me/')).statusCode, 401)
  t.equal((await inject(app, 'POST', '/auth/register/', ACCOUNT)).statusCode, 201)
  t.equal((await inject(app, 'POST', '/auth/login/?x=1', ACCOUNT)).statusCode, 200)
})

t.test('A validation error has an entry for each issue, with a dotted path and a message', async t => {
  const table: [unknown, { path: string, message: string }[]][] = [
    [{}, [{ path: 'name', message: 'is required' }]],
    [[], [{ path: '', message: 'must be object' }]],
    [{ name: 'A' }, [{ path: 'name', message: 'must NOT have fewer than 2 characters' }]],
    [{ name: 7, link: 'x' }, [
      { path: 'name', message: 'must be string' }, { path: 'link', message: 'must be a URL' },
    ]],
    [{ name: 'Ada', day: 'today' }, [{ path: 'day', message: 'must match format "date"' }]],
    [{ name: 'Ada', address: {} }, [{ path: 'address.lines', message: 'is required' }]],
    [{ name: 'Ada', address: { lines: [{ text: 'x' }, { text: '\u0000' }, {}] } }, [
      { path: 'address.lines.1.text', message: 'must not contain the character NUL' },
      { path: 'address.lines.2.text', message: 'is required' },
    ]],
  ]
  for (const [body, errors] of table) {
    const response = await inject(app, 'POST', '/checked', body)
    const json = response.json()
    const byPath = (a: { path: string }, b: { path: string }) => a.path < b.path ? -1 : 1
    t.equal(response.statusCode, 400)
    t.strictSame({ ...json, errors: json.errors.sort(byPath) },
      { message: 'Validation error', errors: errors.sort(byPath) }, JSON.stringify(body))
  }

  const email = await inject(app, 'POST', '/auth/login', { email: 'x', password: 'x' })
  t.strictSame(email.json(), {
    message: 'Validation error', errors: [{ path: 'email', message: 'must be an email address' }],
  })
  const query = await inject(app, 'GET', '/checked?sort=up')
  t.equal(query.statusCode, 400)
  t.match(query.json(), { message: 'Validation error', errors: [{ path: 'sort', message: /must be/ }] })
  t.strictSame(Object.keys(query.json()), ['message', 'errors'])
  const repeated = await inject(app, 'GET', '/checked?sort=asc&sort=asc')
  t.match([repeated.statusCode, repeated.json().errors[0].path], [400, 'sort'], 'a repeated parameter')
})

t.test('A response has at most 200 issues', async t => {
  const payload = { name: 'Ada', address: { lines: Array(300).fill({}) } }
  const { errors } = (await app.inject({ method: 'POST', url: '/checked', payload })).json()
  t.equal(errors.length, 200)
  t.strictSame(errors.at(-1), { path: 'address.lines.199.text', message: 'is required' })
})

t.test('Errors in a handler', async t => {
  /** Requests both routes, which throw this error. Returns their responses and the lines that were logged. */
  async function letThrow (error: unknown) {
    thrown = error
    lines.length = requests.length = 0
    const responses = []
    for (const url of ['/throw', '/failure']) {
      const response = await inject(app, 'GET', url)
      t.equal(response.headers['content-type'], 'application/json; charset=utf-8')
      responses.push([response.statusCode, response.json()])
    }
    return { responses, lines: [...lines] }
  }

  const FAILED = [[500, { message: 'Internal server error' }], [500, { message: 'Failed to do it' }]]

  t.test('an HttpError has its status and message, and is not logged', async t => {
    for (const status of [400, 401, 403, 404, 409, 500, 503]) {
      const { responses, lines } = await letThrow(new HttpError(status, 'In words'))
      t.strictSame(responses, [[status, { message: 'In words' }], [status, { message: 'In words' }]])
      t.strictSame(lines, [])
    }
  })

  t.test('an HttpError adds its fields and headers to the response', async t => {
    thrown = new HttpError(429, 'Busy', {
      fields: { queue: 'full' }, headers: { 'retry-after': 7, 'x-reason': 'hashing' },
    })
    const response = await inject(app, 'GET', '/failure')
    t.strictSame([response.statusCode, response.json()], [429, { message: 'Busy', queue: 'full' }])
    t.match(response.headers, { 'retry-after': '7', 'x-reason': 'hashing' })
  })

  t.test('any other error becomes the failure of the route, and is logged with its cause', async t => {
    const { responses, lines } = await letThrow(new Error('relation "users" of /var/lib'))
    t.strictSame(responses, FAILED)
    t.strictSame(lines.map(({ level, reqId }) => [level, reqId]), [[50, requests[0]], [50, requests[1]]])
    for (const { err } of lines) {
      t.equal(err.message, 'relation "users" of /var/lib')
      t.match(err.stack, /\n +at /)
    }
  })

  t.test('an error that only looks like an HttpError becomes the failure', async t => {
    const table = [
      Object.assign(new Error('secret'), { statusCode: 418 }),
      Object.assign(new Error('secret'), { statusCode: 404, code: 'ENOENT' }),
      Object.assign(new Error('secret'), { code: 'FST_SOMETHING' }),
      new errorCodes.FST_ERR_REP_INVALID_PAYLOAD_TYPE('secret'),
      'secret',
      { message: 'secret', statusCode: 400 },
    ]
    for (const error of table) t.strictSame((await letThrow(error)).responses, FAILED)
  })

  t.test('a failure may have a different status than 500, and does not replace an HttpError', async t => {
    lines.length = 0
    thrown = new Error('no disk')
    const fallback = await inject(app, 'GET', '/fallback')
    t.strictSame([fallback.statusCode, fallback.json()], [200, { items: [] }])
    t.match(lines, [{ level: 50, err: { message: 'no disk' } }])
    thrown = new HttpError(404, 'Not there')
    const refusal = await inject(app, 'GET', '/fallback')
    t.strictSame([refusal.statusCode, refusal.json()], [404, { message: 'Not there' }])
  })

  t.test('a response that cannot be serialized becomes the failure', async t => {
    const response = await inject(app, 'GET', '/unsendable')
    t.strictSame([response.statusCode, response.json()], [500, { message: 'Failed to send it' }])
  })
})

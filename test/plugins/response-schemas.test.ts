import { Type } from '@sinclair/typebox'
import type { RouteOptions } from 'fastify'

import { OVERLOADED } from '#lib/http/errors.js'
import { ResponseObject, Message } from '#lib/values/schemas.js'
import { make } from '../helper.ts'
import t from '../suite.ts'

const GUARDED = ['Access token required', 'Invalid or expired token']

const { app } = await make(t)
const routes = new Map<string, RouteOptions>()
app.addHook('onRoute', route => { routes.set(`${String(route.method)} ${route.url}`, route) })

const ok = ResponseObject({ ok: Type.Boolean() })
const response = { 200: ok }
const input = Type.Object({})
const handler = async () => ({ ok: true })

app.register(async app => {
  app.get('/bare', handler)
  app.get('/plain', { schema: { response } }, handler)
  app.post('/body', { schema: { body: input, response } }, handler)
  app.get('/params/:id', { schema: { params: input, response } }, handler)
  app.get('/query', { schema: { querystring: input, response } }, handler)
  app.get('/any', { onRequest: app.authenticate, schema: { response } }, handler)
  app.get('/some', { onRequest: app.requireRole('ADMIN'), schema: { response } }, handler)
  app.get('/hooks', { onRequest: [async () => {}, app.requireRole('ADMIN')], schema: { response } }, handler)
  app.get('/unguarded', { onRequest: async () => {}, schema: { response } }, handler)
  app.get('/failure', { config: { failure: 'Failed to do it' }, schema: { response } }, handler)
  app.get('/fallback', { config: { failure: { status: 200, body: { ok: false } } }, schema: { response } }, handler)
  app.post('/everything/:id', {
    onRequest: app.requireRole('ADMIN'),
    config: { failure: 'Failed to do it' },
    schema: {
      body: input,
      params: input,
      response: {
        201: ok,
        400: Message('That is taken', 'All fields are required'),
        401: Message('Unauthorized'),
        403: Message('Not yours'),
        404: Message('Not found here'),
        500: Message('No disk'),
      },
    },
  }, handler)
})
await app.ready()

/** The declared messages of a route by status, or the schema if it has no messages. */
function declared (route: string) {
  const responses = Object.entries(routes.get(route)!.schema!.response as Record<string, typeof ok>)
  return Object.fromEntries(responses.map(([status, schema]) => {
    const { message } = schema.properties as { message?: { enum: string[] } }
    return [status, message ? message.enum.toSorted() : schema]
  }))
}

t.test('A route declares the responses that its other options imply', async t => {
  const table: [route: string, responses: object][] = [
    ['GET /bare', {}],
    ['GET /plain', { 200: ok }],
    ['POST /body', { 200: ok, 400: ['Validation error'] }],
    ['GET /params/:id', { 200: ok, 400: ['Validation error'] }],
    ['GET /query', { 200: ok, 400: ['Validation error'] }],
    ['GET /any', { 200: ok, 401: GUARDED }],
    ['GET /some', { 200: ok, 401: GUARDED, 403: ['Forbidden'] }],
    ['GET /hooks', { 200: ok, 401: GUARDED, 403: ['Forbidden'] }],
    ['GET /unguarded', { 200: ok }],
    ['GET /failure', { 200: ok, 500: ['Failed to do it'], 503: [OVERLOADED] }],
    ['GET /fallback', { 200: ok }],
    ['POST /everything/:id', {
      201: ok,
      400: ['All fields are required', 'That is taken', 'Validation error'],
      401: [...GUARDED, 'Unauthorized'],
      403: ['Forbidden', 'Not yours'],
      404: ['Not found here'],
      500: ['Failed to do it', 'No disk'],
      503: [OVERLOADED],
    }],
  ]
  for (const [route, responses] of table) t.strictSame(declared(route), responses, route)
})

t.test('A declared 400 may list issues, each with path and message', async t => {
  for (const route of ['POST /body', 'POST /everything/:id']) {
    const schema = (routes.get(route)!.schema!.response as Record<number, Record<string, unknown>>)[400]!
    t.match(schema, {
      type: 'object',
      properties: {
        errors: {
          type: 'array',
          items: { type: 'object', required: ['path', 'message'], additionalProperties: false },
        },
      },
    })
    t.strictSame(schema.required, ['message'], 'only validation errors have errors')
  }
})

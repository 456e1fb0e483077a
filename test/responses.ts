import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'

import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import type { FastifyInstance, FastifyRequest, InjectOptions, RouteOptions } from 'fastify'

import { buildApp } from '#lib/app.js'
import { loadConfig } from '#lib/config.js'
import { RUN_DIR } from './run.ts'

/** What one test file saw, written when its process ends. */
interface Record {
  file: string
  /** The answers that were received: `METHOD route status`, and the text of a message that the route declares. */
  seen: string[]
  /** Answers that no schema declares. */
  undeclared: string[]
}

const RECORDS = join(RUN_DIR, 'answers')
/** The tests in here see every response that a route declares. */
const FOLDERS = ['test/plugins', 'test/routes']

/** Declared as of all operations, but this one refuses every request before it could be too many. */
const NEVER_SENT = 'DELETE /users/:userId/club 503 '

const ajv = new Ajv({ strict: false })
addFormats.default(ajv)

const seen = new Set<string>()
const undeclared = new Set<string>()

process.once('exit', () => {
  const file = relative('.', process.argv[1]!)
  // A test that saw no answer ran too.
  if (!file.endsWith('.test.ts')) return
  const record: Record = { file, seen: [...seen], undeclared: [...undeclared] }
  mkdirSync(RECORDS, { recursive: true })
  writeFileSync(join(RECORDS, `${process.pid}.json`), JSON.stringify(record))
})

/**
 * Notes every answer of the service, and checks it against the schema that its route declares for the status. What is
 * hidden from the API description declares none.
 */
export function recordResponses (app: FastifyInstance) {
  /** The requests whose answer `onSend` has not seen: so far, or because it comes from the cache. */
  const requests = new WeakMap<object, FastifyRequest>()

  app.addHook('onRequest', async request => { requests.set(request.raw, request) })

  app.addHook('onSend', async (request, reply, sent) => {
    const payload = sent instanceof Readable ? await buffer(sent) : sent
    requests.delete(request.raw)
    record(request, reply.statusCode, reply.getHeaders(), payload)
    return payload
  })

  const inject = app.inject.bind(app)
  app.inject = (async (options: InjectOptions | string) => {
    const response = await inject(options)
    const request = requests.get(response.raw.req)
    if (request) record(request, response.statusCode, response.headers, response.rawPayload)
    return response
  }) as typeof inject
}

function record (
  { method, routeOptions }: FastifyRequest, statusCode: number, headers: { [name: string]: unknown }, payload: unknown
) {
  if (!routeOptions.url || routeOptions.schema?.hide || method === 'HEAD' || method === 'OPTIONS') return
  // What the route declares was received before, or comes packed.
  if (statusCode === 304 || headers['content-encoding']) return
  const [type] = String(headers['content-type']).split(';')
  const isJson = type === 'application/json'
  const body = payload ? isJson ? JSON.parse(String(payload)) : String(payload) : null
  const schema = answersOf(routeOptions)[statusCode]
  const answer = [method, routeOptions.url, statusCode]
  const { contentMediaType = schema?.enum ? 'text/plain' : 'application/json' } = schema ?? {}
  if (!schema) undeclared.add([...answer, 'is not declared:', payload].join(' '))
  else if (!ajv.validate(schema, body)) undeclared.add([...answer, ajv.errorsText(), payload].join(' '))
  else if (body !== null && type !== contentMediaType) undeclared.add([...answer, 'is', type].join(' '))
  else seen.add([...answer, ...textsOf(schema) ? [isJson ? body.message : body] : []].join(' '))
}

/**
 * Compares what all test files saw with what all routes declare. An answer seen and not declared is always wrong; one
 * declared and not seen is wrong when all tests of the plugins and routes ran.
 */
export async function compareResponses (databaseUrl: string): Promise<string[]> {
  mkdirSync(RECORDS, { recursive: true })
  const records = readdirSync(RECORDS).map(file => JSON.parse(readFileSync(join(RECORDS, file), 'utf8')) as Record)
  const wrong = records.flatMap(({ file, undeclared }) => undeclared.map(answer => `${file}: ${answer}`))

  const ran = new Set(records.map(({ file }) => file))
  const files = FOLDERS.flatMap(folder => readdirSync(folder, { encoding: 'utf8', recursive: true })
    .filter(file => file.endsWith('.test.ts')).map(file => join(folder, file)))
  if (files.every(file => ran.has(file))) {
    const seen = new Set(records.flatMap(({ seen }) => seen))
    const missed = (await declaredAnswers(databaseUrl))
      .filter(answer => !seen.has(answer) && !answer.startsWith(NEVER_SENT))
    wrong.push(...missed.map(answer => `no test saw ${answer}`))
  }
  return wrong
}

async function declaredAnswers (databaseUrl: string) {
  const config = { DATABASE_URL: databaseUrl, JWT_SECRET: 'a secret that signs nothing in here' }
  const app = buildApp(loadConfig(config, '/dev/null'))
  const routes: RouteOptions[] = []
  app.addHook('onRoute', route => { routes.push(route) })
  await app.ready()
  await app.close()
  return routes.filter(({ method }) => method !== 'HEAD' && method !== 'OPTIONS').flatMap(route =>
    Object.entries(answersOf(route)).flatMap(([status, schema]) =>
      (textsOf(schema) ?? ['']).map(text => [route.method, route.url, status, text].join(' ').trim())))
}

interface Answer {
  enum?: string[]
  contentMediaType?: string
  properties?: { message?: { enum?: string[] } }
}

function answersOf ({ schema }: Pick<RouteOptions, 'schema'>) {
  return (schema?.response ?? {}) as { [status: string]: Answer }
}

/** The texts that an answer `{message}`, or one of plain text, may have. */
function textsOf (schema: Answer) {
  return schema.properties?.message?.enum ?? schema.enum
}

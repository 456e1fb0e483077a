import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { Readable } from 'node:stream'

import type { TSchema } from '@sinclair/typebox'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'

import { buildApp } from '#lib/app.js'
import { loadConfig } from '#lib/config/config.js'
import { textsOf } from '#lib/values/schemas.js'
import { RUN_DIR } from './run.ts'

/** The responses that a test file or a suite saw; written when its process exits. */
interface Record {
  file: string
  /** `METHOD route status`, and the text where the route declares its texts. */
  seen: string[]
  /** Responses that no schema declares. */
  undeclared: string[]
}

const RECORDS = join(RUN_DIR, 'responses')
/** The files here share all tests of plugins and routes. Together they must see every declared response. */
const SUITES = 'dist/test/suites'

const ajv = new Ajv({ strict: false })
addFormats.default(ajv)

const seen = new Set<string>()
const undeclared = new Set<string>()

process.once('exit', () => {
  const file = relative('.', process.argv[1]!)
  // A file without responses also counts as run.
  if (!/\.(test|system)\.js$/.test(file) && !file.startsWith(SUITES)) return
  const record: Record = { file, seen: [...seen], undeclared: [...undeclared] }
  mkdirSync(RECORDS, { recursive: true })
  writeFileSync(join(RECORDS, `${process.pid}.json`), JSON.stringify(record))
})

/**
 * Records every response of the service, and validates it against the schema that its route declares for the status.
 * Routes that are hidden from the API description declare none.
 */
export function recordResponses (app: FastifyInstance) {
  app.addHook('onSend', (request, reply, payload, done) => {
    // Its responses are not declared.
    if (request.routeOptions.schema?.hide) return done()
    const note = (body: unknown) => record(request, reply.statusCode, reply.getHeaders(), body)
    if (payload instanceof Readable) {
      // Otherwise, a stream would stay open after its client has gone, until its next chunk.
      reply.raw.once('close', () => payload.destroy())
      return done(null, Readable.from(copy(payload, note)))
    }
    note(payload)
    done()
  })
}

/** Passes a stream on, and then its content to `note`. */
async function * copy (stream: Readable, note: (body: Buffer) => void) {
  const chunks: Buffer[] = []
  for await (const chunk of stream) {
    chunks.push(chunk)
    yield chunk
  }
  note(Buffer.concat(chunks))
}

function record (
  { method, routeOptions, socket }: FastifyRequest, statusCode: number, headers: { [name: string]: unknown },
  payload: unknown
) {
  // It reaches no client.
  if (socket.destroyed) return

  if (!routeOptions.url || routeOptions.schema?.hide || method === 'HEAD' || method === 'OPTIONS') return
  // There is no body to validate: a 304 is empty, and encoded bodies are validated unencoded elsewhere.
  if (statusCode === 304 || headers['content-encoding']) return
  const [type] = String(headers['content-type']).split(';')
  const isJson = type === 'application/json'
  const body = payload ? isJson ? JSON.parse(String(payload)) : String(payload) : null
  const schema = responsesOf(routeOptions)[statusCode]
  const response = [method, routeOptions.url, statusCode]
  const contentMediaType = schema?.contentMediaType ?? (schema?.enum ? 'text/plain' : 'application/json')
  // Every route declares it as 4XX: the operation does not run.
  if (!schema && body?.message === 'Request body is too large') return
  if (!schema) undeclared.add([...response, 'is not declared:', payload].join(' '))
  else if (!ajv.validate(schema, body)) undeclared.add([...response, ajv.errorsText(), payload].join(' '))
  // RFC 9110, § 15.5.2
  else if (statusCode === 401 && !headers['www-authenticate']) undeclared.add(`${response.join(' ')} names no scheme`)
  else if (body !== null && type !== contentMediaType) undeclared.add([...response, 'is', type].join(' '))
  else seen.add([...response, ...textsOf(schema).length > 0 ? [isJson ? body.message : body] : []].join(' '))
}

/**
 * Compares the responses that all test files saw with the responses that all routes declare. Undeclared responses
 * always fail. Responses that no test saw fail only if the suites ran.
 */
export async function compareResponses (databaseUrl: string): Promise<string[]> {
  mkdirSync(RECORDS, { recursive: true })
  const records = readdirSync(RECORDS).map(file => JSON.parse(readFileSync(join(RECORDS, file), 'utf8')) as Record)
  const wrong = records.flatMap(({ file, undeclared }) => undeclared.map(response => `${file}: ${response}`))

  if (records.some(({ file }) => file.startsWith(SUITES))) {
    const seen = new Set(records.flatMap(({ seen }) => seen))
    const missed = (await declaredResponses(databaseUrl)).filter(response => !seen.has(response))
    wrong.push(...missed.map(response => `no test saw ${response}`))
  }
  return wrong
}

async function declaredResponses (databaseUrl: string) {
  const config = { DATABASE_URL: databaseUrl, JWT_SECRET: 'a secret that signs nothing in here' }
  const app = buildApp(loadConfig(config, '/dev/null'))
  const routes: RouteOptions[] = []
  app.addHook('onRoute', route => { routes.push(route) })
  await app.ready()
  await app.close()
  return routes.filter(({ method }) => method !== 'HEAD' && method !== 'OPTIONS').flatMap(route =>
    Object.entries(responsesOf(route)).flatMap(([status, schema]) => {
      const response = [route.method, route.url, status].join(' ')
      const texts = textsOf(schema).map(text => `${response} ${text}`)
      return texts.length > 0 ? texts : [response]
    }))
}

const responsesOf = ({ schema }: Pick<RouteOptions, 'schema'>) =>
  (schema?.response ?? {}) as { [status: string]: TSchema }

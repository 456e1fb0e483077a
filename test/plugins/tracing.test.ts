import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { PassThrough } from 'node:stream'
import { json } from 'node:stream/consumers'

import { createLogger } from '#lib/http/logger.js'
import { build, createDatabase, inject } from '../helper.ts'
import { freePort } from '../process.ts'
import t, { type Test } from '../suite.ts'

const DATABASE_URL = await createDatabase()
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'
const SERVER = 2
const OK = 1
const ERROR = 2

/** OTLP in JSON (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding). */
interface Attribute { key: string, value: { stringValue?: string, intValue?: number } }
interface OtlpSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  attributes: Attribute[]
  status: { code?: number, message?: string }
  events: object[]
}
interface Export {
  resourceSpans: { resource: { attributes: Attribute[] }, scopeSpans: { spans: OtlpSpan[] }[] }[]
}

const valuesOf = (attributes: Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]))

/** A collector that stores its input. It responds with `status`, which a test may change. */
async function startCollector (t: Test) {
  const exports: Export[] = []
  const headers: IncomingHttpHeaders[] = []
  const server = createServer(async (request, response) => {
    t.equal(`${request.method} ${request.url}`, 'POST /v1/traces')
    headers.push(request.headers)
    exports.push(await json(request) as Export)
    response.writeHead(collector.status, { 'content-type': 'application/json' }).end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const collector = {
    status: 200,
    headers,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    resources: () => exports.flatMap(({ resourceSpans }) => resourceSpans.map(({ resource }) => resource)),
    spans: () => exports.flatMap(({ resourceSpans }) => resourceSpans)
      .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
      .map(span => ({ ...span, attributes: valuesOf(span.attributes) })),
  }
  return collector
}

/** The service with tracing on, and the lines of its log. */
async function startTraced (t: Test, endpoint: string) {
  const output = new PassThrough({ encoding: 'utf8' })
  let text = ''
  output.on('data', chunk => { text += chunk })
  const app = await build(t, { DATABASE_URL, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }, createLogger('info', output))
  return { app, lines: () => text.split('\n').filter(Boolean).map(line => JSON.parse(line)) }
}

/** Sets a variable of the SDK for this test. */
function setVariable (t: Test, name: string, value: string) {
  process.env[name] = value
  t.teardown(() => { delete process.env[name] })
}

const loaded = () => Object.keys(createRequire(import.meta.url).cache)
  .filter(path => /@fastify.otel|@opentelemetry.sdk/.test(path))

t.test('Without OTEL_EXPORTER_OTLP_ENDPOINT, OpenTelemetry is not loaded', async t => {
  const app = await build(t, { DATABASE_URL })
  t.equal((await inject(app, 'GET', '/events')).statusCode, 200)
  t.strictSame(loaded(), [])
  t.notOk(app.hasPlugin('@fastify/otel'))
})

t.test('A request is a span of the trace that it came with', async t => {
  const collector = await startCollector(t)
  const { app, lines } = await startTraced(t, collector.url)
  t.ok(loaded().length > 0)
  const password = 'a secret that no span has'
  const headers = { traceparent: `00-${TRACE}-${PARENT}-01` }
  const { statusCode } = await inject(app, 'POST', '/auth/register?key=value', {
    email: 'ada@example.org', password, firstName: 'Ada', lastName: 'Lovelace',
  }, headers)
  t.equal(statusCode, 201)
  await app.close()

  const [request, ...others] = collector.spans().filter(({ kind }) => kind === SERVER)
  t.equal(others.length, 0)
  t.match(request, { name: 'POST /auth/register', traceId: TRACE, parentSpanId: PARENT, status: {} })
  t.match(request!.attributes, {
    'http.request.method': 'POST',
    'http.route': '/auth/register',
    'http.response.status_code': 201,
    'url.path': '/auth/register',
    'url.scheme': 'http',
  })

  t.notMatch(JSON.stringify(collector.spans()), /ada@|Lovelace|secret|argon2|value"/)

  const line = lines().find(({ path }) => path === '/auth/register')
  t.match(line, { traceId: TRACE, parentId: PARENT, spanId: request!.spanId })
  t.match(valuesOf(collector.resources()[0]!.attributes), { 'service.name': 'community-platform' })
})

t.test('A request without a trace begins one, and the log has it', async t => {
  setVariable(t, 'OTEL_SERVICE_NAME', 'community-of-the-tests')
  setVariable(t, 'OTEL_EXPORTER_OTLP_HEADERS', 'x-token=of-the-tests')
  const collector = await startCollector(t)
  const { app, lines } = await startTraced(t, `${collector.url}/`)
  await inject(app, 'GET', '/events')
  await inject(app, 'GET', '/nowhere')
  await app.close()
  const requests = collector.spans().filter(({ kind }) => kind === SERVER)
  t.strictSame(requests.map(({ name }) => name), ['GET /events', 'GET'])
  for (const { traceId, spanId, parentSpanId, attributes } of requests) {
    t.equal(parentSpanId, undefined)
    const line = lines().find(({ path }) => path === attributes['url.path'])
    t.match(line, { traceId, spanId })
    t.notHas(line, { parentId: String })
  }
  t.match(valuesOf(collector.resources()[0]!.attributes), { 'service.name': 'community-of-the-tests' })
  t.match(collector.headers[0], { 'x-token': 'of-the-tests' })
})

t.test('Spans of failures are errors, and of refusals not, no span has secrets, and probes have none', async t => {
  const collector = await startCollector(t)
  const { app } = await startTraced(t, collector.url)
  await app.sql`ALTER TABLE clubs RENAME TO gone`
  const secret = 'x'.repeat(43)
  const paths = ['/auth/me', '/clubs', '/livez', '/readyz?n=1', `/feeds/${secret}`, `/events?code=${secret}`]
  const statuses: number[] = []
  for (const path of paths) statuses.push((await inject(app, 'GET', path)).statusCode)
  await app.sql`ALTER TABLE gone RENAME TO clubs`
  await app.close()
  t.strictSame(statuses.slice(0, 2), [401, 500])
  const spans = collector.spans().filter(({ kind }) => kind === SERVER)
  t.strictSame(spans.map(({ attributes }) => attributes['url.path']),
    ['/auth/me', '/clubs', '/feeds/[redacted]', '/events'])
  t.strictSame(spans.slice(0, 2).map(({ status }) => status.code), [OK, ERROR])
  t.notMatch(JSON.stringify(collector.spans()), secret)
})

t.test('Spans that the sampler drops are not exported, but the log has their traces', async t => {
  setVariable(t, 'OTEL_TRACES_SAMPLER', 'parentbased_traceidratio')
  setVariable(t, 'OTEL_TRACES_SAMPLER_ARG', '0')
  const collector = await startCollector(t)
  const { app, lines } = await startTraced(t, collector.url)
  await inject(app, 'GET', '/events')
  await inject(app, 'GET', '/clubs', undefined, { traceparent: `00-${TRACE}-${PARENT}-01` })
  await app.close()
  t.strictSame(collector.spans().filter(({ kind }) => kind === SERVER).map(({ name }) => name), ['GET /clubs'])
  t.match(lines().find(({ path }) => path === '/events'), { traceId: /^[\da-f]{32}$/, spanId: /^[\da-f]{16}$/ })
})

t.test('The log says once that spans cannot be exported, and when they can', async t => {
  setVariable(t, 'OTEL_BSP_SCHEDULE_DELAY', '10')
  const collector = await startCollector(t)
  collector.status = 400
  const { app, lines } = await startTraced(t, collector.url)
  const messages = () => lines().map(({ msg }) => msg).filter(message => /spans/i.test(message))
  const exported = async (count: number) => {
    while (collector.resources().length < count) {
      await inject(app, 'GET', '/events')
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
  await exported(3)
  collector.status = 200
  await exported(6)
  await app.close()
  t.strictSame(messages(), ['Cannot export spans', 'Exporting spans works again'])
})

t.test('A missing or silent collector does not block requests or the stop', async t => {
  const silent = createTcpServer(socket => { socket.on('error', () => {}) }).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  const ports = { away: await freePort(), silent: (silent.address() as AddressInfo).port }
  for (const [state, port] of Object.entries(ports)) {
    const { app, lines } = await startTraced(t, `http://127.0.0.1:${port}`)
    t.equal((await inject(app, 'GET', '/events')).statusCode, 200)
    const start = performance.now()
    await app.close()
    // Two seconds for the spans. The exporter by itself would try for ten.
    t.ok(performance.now() - start < 8000, state)
    t.ok(lines().some(({ msg }) => msg === 'The last spans were lost'), state)
  }
})

import { createHash, timingSafeEqual } from 'node:crypto'

import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import postgres from 'postgres'

import { hashingStats } from '../lib/auth/passwords.ts'
import { VERSION } from '../lib/config/config.ts'
import { type Sql } from '../lib/database/pools.ts'
import { isRefusal } from '../lib/database/conflicts.ts'
import { HttpError } from '../lib/http/errors.ts'
import { standardOutput } from '../lib/http/log-output.ts'
import { onEnd } from '../lib/http/request-end.ts'
import { countPictures } from '../lib/pictures/uses.ts'
import { withTimeout } from '../lib/config/timeout.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Time of arrival, in milliseconds of `performance.now()`. */
    since: number
  }

  interface FastifyContextConfig {
    /** The response is a stream that stays open. */
    isStream?: true
  }
}

/** Upper bounds of the histogram's buckets, in seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

const digest = (text: string) => createHash('sha256').update(text).digest()

/**
 * Measures requests for Prometheus by route pattern. By path, a client that requests 1,000 unknown paths would make
 * each scrape longer by 16,000 lines. Serves the metrics at `/metrics` to holders of METRICS_TOKEN. Without
 * METRICS_TOKEN, nothing is measured.
 */
export default fp(async app => {
  const { METRICS_TOKEN } = app.config
  if (!METRICS_TOKEN) return

  const { registry, times, databaseErrors } = await createMetrics(app)

  app.decorateRequest('since', 0)
  app.addHook('onRequest', (request, _reply, done) => {
    request.since = performance.now()
    done()
  })
  app.addHook('onError', (_request, _reply, error, done) => {
    if (error instanceof postgres.PostgresError && !isRefusal(error)) databaseErrors.inc({ code: error.code })
    done()
  })
  onEnd(app, ({ method, routeOptions, since }, _reply, status) => {
    // A stream lasts as long as its client looks at a page.
    if (routeOptions.config.isStream) return
    // A trailing slash does not make a different route.
    const route = routeOptions.url?.replace(/(?<=.)\/$/, '') ?? 'unknown'
    times.observe({ method, route, status }, (performance.now() - since) / 1000)
  })

  const expected = digest(METRICS_TOKEN)
  const options = { schema: { hide: true }, logLevel: 'warn' } as const
  app.get('/metrics', options, async ({ headers: { authorization = '' } }, reply) => {
    const [, token = ''] = authorization.split(' ')
    // The comparison takes constant time, because digests have equal lengths.
    if (!timingSafeEqual(digest(token), expected)) throw new HttpError(401, 'Metrics token required')
    return reply.type(registry.contentType).send(await registry.metrics())
  })
}, { name: 'metrics', dependencies: ['database', 'admission', 'cache', 'memory', 'email', 'live', 'pictures'] })

async function sizeOfDatabase (sql: Sql) {
  const [{ bytes }] = await sql<[{ bytes: number }]>`SELECT pg_database_size(current_database())::float8 AS bytes`
  return bytes
}

/** Creates the metrics of the process and of other plugins, and the histogram of requests. */
async function createMetrics (app: FastifyInstance) {
  const { cache, sql, database: { connections }, queues, outbox, memory, live, config } = app
  const poolSize = config.DATABASE_POOL_SIZE
  // Loaded here because the service starts faster without it.
  const { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } = await import('prom-client')
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })

  const times = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Duration of requests',
    labelNames: ['method', 'route', 'status'],
    buckets: BUCKETS,
    registers,
  })
  const databaseErrors = new Counter({
    name: 'database_errors_total',
    help: 'Requests that failed with an error of PostgreSQL, by SQLSTATE; values that PostgreSQL refused do not count',
    labelNames: ['code'],
    registers,
  })
  gauge('database_connections', 'Open connections to PostgreSQL', () => connections.open)
  gauge('database_connections_max', 'Maximum number of connections: DATABASE_POOL_SIZE, and two for short statements',
    () => poolSize + 2)
  counter('database_connections_silent_total', 'Connections closed because PostgreSQL was silent for too long',
    () => connections.silent)
  counter('database_connections_stray_total',
    'Connections closed because a statement ran in the transaction of a different caller', () => connections.stray)

  const { passwords, ...others } = queues
  for (const [name, queue] of Object.entries(others)) {
    gauge(`${name}_running`, `Places that are taken in the queue of ${name}`, () => queue.running)
    gauge(`${name}_waiting`, `Entries that wait in the queue of ${name}`, () => queue.waiting)
  }

  gauge('password_hashes_running', 'Passwords being hashed or verified', () => hashingStats(passwords).running)
  gauge('password_hashes_waiting', 'Passwords waiting to be hashed or verified', () => hashingStats(passwords).waiting)
  counter('password_hashes_refused_total', 'Passwords not hashed because the queue was full or the client did not wait',
    () => passwords.refused)

  counter('response_cache_hits_total', 'Cache hits', () => cache.counts.hits)
  counter('response_cache_misses_total', 'Cache misses: reads from the database, shared by concurrent requests',
    () => cache.counts.misses)
  counter('response_cache_validations_total', 'Queries for the current snapshot, shared by concurrent requests',
    () => cache.counts.validations)
  gauge('response_cache_bytes', 'Size of cached responses in bytes', cache.bytes)

  if (outbox.isConfigured) {
    counter('emails_sent_total', 'Emails accepted by the SMTP server', () => outbox.deliveries().sent)
    counter('emails_refused_total', 'Emails refused by the SMTP server', () => outbox.deliveries().refused)
    gauge('emails_paused', '1 while the SMTP server is unavailable', () => Number(outbox.deliveries().isPaused))
    const emails = storedGauges(() => outbox.count())
    emails('emails_pending', 'Emails waiting to be sent', ({ pending }) => pending.count)
    emails('emails_oldest_pending_seconds', 'Age of the oldest waiting email', ({ pending }) => pending.age)
    emails('emails_oldest_untried_seconds',
      'Age of the oldest due email that was never tried; for bulk emails, at most the time since one was sent',
      ({ untried }) => untried.age)
    emails('email_batches_due', 'Email batches that are due', ({ batches }) => batches.count)
    emails('email_batches_oldest_due_seconds', 'Time since the oldest batch was due that can be written',
      ({ batches }) => batches.age)
    emails('emails_failed', 'Emails that failed permanently', ({ failed }) => failed.count)
  }

  const pictures = storedGauges(() => countPictures(sql))
  pictures('pictures_stored', 'Uploaded pictures in the database', ({ count }) => count)
  pictures('pictures_stored_bytes', 'Size of uploaded pictures in the database', ({ bytes }) => bytes)

  const database = storedGauges(() => sizeOfDatabase(sql))
  database('database_bytes', 'Size of the database on the disk of PostgreSQL', bytes => bytes)

  counter('memory_connections_closed_total', 'Connections closed because the memory was short', () => memory.closed)

  gauge('live_clients', 'Clients that watch lists', () => live.clients)
  counter('live_messages_total', 'Changes of lists sent to clients', () => live.counts.messages)
  counter('live_ticks_total', 'Half-second intervals in which clients watched lists', () => live.counts.ticks)

  counter('log_lines_dropped_total', 'Log lines dropped because the log could not be written',
    () => standardOutput.dropped)

  new Gauge({
    name: 'build_info',
    help: 'Versions of the service and Node.js',
    labelNames: ['version', 'node'],
    registers,
  }).set({ version: VERSION, node: process.version }, 1)

  return { registry, times, databaseErrors }

  function gauge (name: string, help: string, read: () => number) {
    return new Gauge({ name, help, registers, collect () { this.set(read()) } })
  }

  /**
   * Returns a function that creates gauges of rows in the database, which are equal in all processes. `count` runs once
   * per scrape. The gauges keep their values while the database is unreachable.
   */
  function storedGauges<Counts> (count: () => Promise<Counts>) {
    let counting: Promise<Counts> | undefined
    return (name: string, help: string, read: (counts: Counts) => number) => new Gauge({
      name,
      help,
      registers,
      async collect () {
        counting ??= count().finally(() => { counting = undefined })
        await withTimeout(counting, config.DATABASE_TIMEOUT).then(counts => this.set(read(counts)), () => {})
      },
    })
  }

  /** Creates a counter for a value that is counted elsewhere. */
  function counter (name: string, help: string, read: () => number) {
    return new Counter({
      name,
      help,
      registers,
      collect () {
        this.reset()
        this.inc(read())
      },
    })
  }
}

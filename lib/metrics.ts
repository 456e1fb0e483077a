import type { CacheCounts } from './cache/snapshot-cache.ts'
import type { PoolLoad } from './query-deadline.ts'

/** Where the numbers come from that are counted anyway. */
export interface Sources {
  version: string
  pool: { size: number, load: PoolLoad }
  hashing (): { running: number, waiting: number, refused: number }
  cache: { counts: CacheCounts, bytes (): number }
}

/** The upper bounds by which the times of requests are told apart, in seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** What the service tells Prometheus: of its process, of the requests that it observes, and what the sources say. */
export async function createMetrics ({ version, pool, hashing, cache }: Sources) {
  // Loaded when needed only: a service without metrics starts faster without.
  const { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } = await import('prom-client')
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })

  const times = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Requests, by how long they took',
    labelNames: ['method', 'route', 'status'],
    buckets: BUCKETS,
    registers,
  })
  gauge('database_pool_connections', 'Connections that the pool may have', () => pool.size)
  gauge('database_pool_used', 'Connections at work', () => Math.min(pool.load.pending, pool.size))
  gauge('database_pool_waiting', 'Queries and transactions that wait for a connection',
    () => Math.max(pool.load.pending - pool.size, 0))
  counter('database_queries_total', 'Queries and transactions that have ended', () => pool.load.done)
  counter('database_queries_late_total', 'Those that were given up after DATABASE_TIMEOUT', () => pool.load.late)

  gauge('password_hashes_running', 'Passwords that are hashed or verified', () => hashing().running)
  gauge('password_hashes_waiting', 'Passwords that wait for that', () => hashing().waiting)
  counter('password_hashes_refused_total', 'Passwords that too many waited before', () => hashing().refused)

  counter('response_cache_hits_total', 'Responses from memory', () => cache.counts.hits)
  counter('response_cache_misses_total', 'Responses read from the database; requests share them',
    () => cache.counts.misses)
  counter('response_cache_validations_total', 'Questions for the current snapshot; requests share them',
    () => cache.counts.validations)
  gauge('response_cache_bytes', 'Memory of cached responses', cache.bytes)

  new Gauge({ name: 'build_info', help: 'What runs', labelNames: ['version', 'node'], registers })
    .set({ version, node: process.version }, 1)

  return {
    contentType: registry.contentType,
    /** All metrics in the text format of Prometheus. */
    read: () => registry.metrics(),
    /** Records a request by the pattern of its route, with the seconds that it took. */
    observe: (method: string, route: string, status: number, seconds: number) =>
      times.observe({ method, route, status }, seconds),
  }

  function gauge (name: string, help: string, read: () => number) {
    return new Gauge({ name, help, registers, collect () { this.set(read()) } })
  }

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

export type Metrics = Awaited<ReturnType<typeof createMetrics>>

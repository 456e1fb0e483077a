import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import type { FastifyInstance } from 'fastify'
import { parse } from 'yaml'

import { ACCOUNT } from '../fixtures.ts'
import { bearer, build, createDatabase, inject, insert, MAIL, person, readOnly, untilBlocked } from '../helper.ts'
import t from '../suite.ts'

const TOKEN = 'a-token-of-the-tests'

/** Labels that Prometheus adds to each target. */
const ADDED = ['job', 'instance']

/** The samples of the metrics, by name and labels. */
async function scrape (app: FastifyInstance) {
  const response = await inject(app, 'GET', '/metrics', undefined, { authorization: `Bearer ${TOKEN}` })
  t.equal(response.statusCode, 200)
  t.match(response.headers['content-type'], /^text\/plain; version=0\.0\.4/)
  const lines = response.body.split('\n').filter(line => line && !line.startsWith('#'))
  return Object.fromEntries(lines.map(line => line.split(/ (?=\S+$)/))) as { [sample: string]: string }
}

const DATABASE_URL = await createDatabase()
const measured = { DATABASE_URL, METRICS_TOKEN: TOKEN }
const app = await build(t, { ...measured, ...MAIL })
const address = await app.listen({ port: 0 })

t.test('GET /metrics returns 401 without the token', async t => {
  const { token } = await person(app, 'ADMIN')
  for (const authorization of [undefined, '', 'Bearer', 'Bearer ', `Bearer ${TOKEN}x`, `Bearer ${token}`, TOKEN]) {
    const response = await inject(app, 'GET', '/metrics', undefined, { ...authorization && { authorization } })
    t.equal(response.statusCode, 401, String(authorization))
    t.strictSame(response.json(), { message: 'Metrics token required' })
    t.equal(response.headers['www-authenticate'], 'Bearer')
  }
})

t.test('Streams of changes are counted, but not as requests that take hours', async t => {
  const [stream] = await once(get(`${address}/live?list=/clubs&list=/mentors`), 'response')
  await once(stream, 'data')
  while ((await scrape(app)).live_messages_total !== '2') await sleep(10)
  t.equal((await scrape(app)).live_clients, '1')
  t.ok(Number((await scrape(app)).live_ticks_total) >= 0)
  stream.destroy()
  while (app.live.clients > 0) await sleep(10)
  const samples = await scrape(app)
  t.equal(samples.live_clients, '0')
  t.strictSame(Object.keys(samples).filter(sample => sample.includes('route="/live')), [])
})

t.test('Requests are counted by method, route and status', async t => {
  const app = await build(t, measured)
  for (const url of ['/blogs/one', '/blogs/two/?secret=1']) await inject(app, 'GET', url)
  await inject(app, 'GET', '/blogs')
  await inject(app, 'GET', '/blogs/')
  await inject(app, 'POST', '/auth/login', { email: 'ada@example.org', password: 'wrong' })
  await inject(app, 'GET', '/no/such/route')

  const samples = await scrape(app)
  for (const [method, route, status, count] of [
    ['GET', '/blogs/:id', 404, '2'],
    ['GET', '/blogs', 200, '2'],
    ['POST', '/auth/login', 401, '1'],
    ['GET', 'unknown', 404, '1'],
  ] as const) {
    const labels = `method="${method}",route="${route}",status="${status}"`
    t.equal(samples[`http_request_duration_seconds_count{${labels}}`], count, labels)
    const seconds = Number(samples[`http_request_duration_seconds_sum{${labels}}`])
    t.ok(seconds > 0 && seconds < 10, `${seconds} s`)
  }
  t.notMatch(JSON.stringify(samples), /secret|two|such/, 'labels have no text of clients')
  t.strictSame(Object.keys(samples).filter(name => name.startsWith('email')), [], 'without SMTP_URL')
})

t.test('Responses from the cache are counted as requests', async t => {
  /** Requests the events through a socket. Returns their entity tag. */
  const ask = async (headers: Record<string, string> = {}) => {
    const [response] = await once(get(`${address}/events`, { headers }), 'response') as [IncomingMessage]
    await buffer(response)
    return response.headers.etag!
  }
  const etag = await ask()
  for (let time = 0; time < 3; time++) await ask({ 'if-none-match': etag })
  const samples = await scrape(app)
  const count = (status: number) =>
    samples[`http_request_duration_seconds_count{method="GET",route="/events",status="${status}"}`]
  t.strictSame([count(200), count(304)], ['1', '3'])
})

t.test('The cache counts its hits, misses and validations', async t => {
  const app = await build(t, measured)
  const before = await scrape(app)
  t.match(before, { response_cache_hits_total: '0', response_cache_misses_total: '0', response_cache_bytes: '0' })
  // Other databases of the server may commit, which adds misses.
  for (let time = 0; !app.cache.counts.hits && time < 10_000; time++) await inject(app, 'GET', '/clubs')
  const after = await scrape(app)
  for (const name of ['hits_total', 'misses_total', 'validations_total', 'bytes']) {
    t.ok(Number(after[`response_cache_${name}`]) > 0, name)
  }
})

t.test('Connections that were closed because the memory was short are counted', async t => {
  t.equal((await scrape(app)).memory_connections_closed_total, '0')
  app.memory.closed++
  t.equal((await scrape(app)).memory_connections_closed_total, '1')
})

t.test('Gauges count the connections of the pool, and the passwords that are hashed', async t => {
  const app = await build(t, { ...measured, DATABASE_POOL_SIZE: '3' })
  // Opens the connection that also looks for draws.
  await app.database.shortSql`SELECT`
  t.match(await scrape(app), { database_connections: '2', database_connections_max: '5', password_hashes_running: '0' })
  await Promise.all(Array.from({ length: 5 }, () => app.sql`SELECT pg_sleep(0.1)`))
  await t.rejects(app.sql`BEGIN`)
  // Until the connection is closed, a stop would wait for it.
  await app.sql`SELECT`
  t.match(await scrape(app), {
    database_connections: '3', database_connections_silent_total: '0', database_connections_stray_total: '1',
  })
})

t.test('Requests that fail with an error of PostgreSQL are counted by SQLSTATE', async t => {
  const app = await build(t, { ...measured, DATABASE_URL: readOnly(DATABASE_URL) })
  const { token } = await person(await build(t, { DATABASE_URL }), 'STUDENT')
  t.equal((await inject(app, 'PUT', '/me/profile', { firstName: 'Eve' }, bearer(token))).statusCode, 500)
  // PostgreSQL refuses the value of a client.
  t.equal((await inject(app, 'GET', '/events?limit=-1')).statusCode, 500)
  const errors = Object.entries(await scrape(app)).filter(([sample]) => sample.startsWith('database_errors_total'))
  t.strictSame(errors, [['database_errors_total{code="25006"}', '1']])
})

t.test('The queues are shown', async t => {
  // One place for lists.
  const app = await build(t, { ...measured, DATABASE_POOL_SIZE: '4' })
  const address = await app.listen({ port: 0 })
  const requests: Promise<unknown>[] = []
  await app.sql.begin(async sql => {
    await sql`LOCK TABLE clubs`
    for (const path of ['/clubs', '/mentors']) {
      requests.push(once(get(address + path).on('response', buffer), 'response'))
    }
    while ((await scrape(app)).lists_waiting !== '1') await sleep(10)
    t.match(await scrape(app), { lists_running: '1', operations_running: '0', operations_waiting: '0' })
  })
  await Promise.all(requests)
  t.match(await scrape(app), {
    lists_running: '0',
    lists_waiting: '0',
    outside_running: '0',
    provider_running: '0',
    provider_waiting: '0',
    pictures_running: '0',
    pictures_waiting: '0',
  })
})

t.test('A request whose client has gone counts as 499', async () => {
  // A commit, so that the cache has no list
  await insert(app, 'clubs')
  await app.sql.begin(async sql => {
    await sql`LOCK TABLE clubs`
    const request = get(`${address}/clubs`).on('error', () => {})
    await untilBlocked(app.database.shortSql)
    request.destroy()
    while (!(await scrape(app))['http_request_duration_seconds_count{method="GET",route="/clubs",status="499"}']) {
      await sleep(10)
    }
  })
})

t.test('Gauges describe the process and the build', async t => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8'))
  const samples = await scrape(app)
  t.equal(samples[`build_info{version="${version}",node="${process.version}"}`], '1')
  const names = ['nodejs_eventloop_lag_p99_seconds', 'process_cpu_seconds_total', 'process_resident_memory_bytes']
  for (const name of names) t.ok(samples[name], name)
})

t.test('Emails and batches are counted by their state, with the age of the oldest', async t => {
  const smtp = { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'community@example.org' }
  const app = await build(t, { METRICS_TOKEN: TOKEN, DATABASE_TIMEOUT: '1', ...smtp })
  const { id } = await person(app)
  await app.sql`
    INSERT INTO emails (template, bulk, user_id, data, status, created_at, settled_at) VALUES
      ('of-a-later-version', true, ${id}, '{}', 'pending', now() - interval '1 hour', NULL),
      ('of-a-later-version', true, ${id}, '{}', 'sent', now() - interval '1 hour', now() - interval '10 minutes')
  `
  const { emails_oldest_untried_seconds: untried } = await scrape(app)
  t.ok(Number(untried) >= 600 && Number(untried) < 900, `MAIL_RATE limits bulk emails: ${untried} s`)
  await app.sql`DELETE FROM emails`

  await app.sql`
    INSERT INTO emails (template, bulk, user_id, data, status, created_at)
    SELECT template, false, ${id}, '{}', status, now() - interval '1 hour'
    FROM (VALUES
      ('test', 'pending'), ('of-a-later-version', 'pending'), ('test', 'failed'), ('test', 'sent')
    ) AS emails (template, status)
  `
  // Senders leave templates alone that they do not know.
  const insertMailing = (due: string) => app.sql`
    INSERT INTO email_batches (template, data, user_ids, due_at)
    VALUES ('of-a-later-version', '{}', ARRAY[${id}::uuid], now() + ${due}::interval)
  `
  await insertMailing('1 hour')
  t.match(await scrape(app), { email_batches_due: '0', email_batches_oldest_due_seconds: '0' })
  await insertMailing('-1 hour')
  await app.sql`
    INSERT INTO emails (template, bulk, user_id, data) VALUES ('of-a-later-version', true, ${id}, '{}')
  `
  t.match(await scrape(app), { email_batches_due: '1', email_batches_oldest_due_seconds: '0' }, 'long for MAIL_RATE')
  await app.sql`DELETE FROM emails WHERE bulk`
  const expected = {
    emails_pending: '2',
    emails_failed: '1',
    email_batches_due: '1',
    emails_sent_total: '0',
    emails_refused_total: '0',
    emails_paused: /[01]/,
  }
  const samples = await scrape(app)
  t.match(samples, expected)
  for (const name of ['emails_oldest_pending', 'emails_oldest_untried', 'email_batches_oldest_due']) {
    const age = Number(samples[`${name}_seconds`])
    t.ok(age >= 3600 && age < 3900, `${name}: ${age} s`)
  }
  app.outbox.count = () => Promise.reject(new Error('no database'))
  t.match(await scrape(app), expected, 'while the database is away')
  app.outbox.count = () => new Promise(() => {})
  t.match(await scrape(app), expected, 'while the database does not answer')
})

t.test('Pictures are counted with their bytes', async t => {
  const app = await build(t, { ...measured, DATABASE_TIMEOUT: '1' })
  t.match(await scrape(app), { pictures_stored: '0', pictures_stored_bytes: '0' })
  const { id, token } = await person(app)
  const fields = { user_id: id, large: Buffer.alloc(50_000, 'x'), small: Buffer.alloc(7), width: 1, height: 1 }
  for (let time = 0; time < 2; time++) await insert(app, 'pictures', fields)
  const { database_bytes: bytes, ...pictures } = await scrape(app)
  t.match(pictures, { pictures_stored: '2', pictures_stored_bytes: '100014' })
  t.ok(Number(bytes) > 5_000_000, `${bytes} bytes of the database`)

  const headers = { ...bearer(token), 'content-type': 'image/gif' }
  await app.inject({ method: 'POST', url: '/me/pictures', headers, payload: 'GIF89a' })
  t.match(await scrape(app), {
    'http_request_duration_seconds_count{method="POST",route="/me/pictures",status="415"}': '1',
  })
})

t.test('Every metric on the dashboard exists, with its labels', async t => {
  for (let time = 0; time < 3; time++) await inject(app, 'GET', '/clubs')
  await inject(app, 'POST', '/auth/login', { email: 'ada@example.org', password: 'wrong' })
  const failing = await build(t, { ...measured, DATABASE_URL: readOnly(DATABASE_URL) })
  await inject(failing, 'POST', '/auth/register', ACCOUNT)
  const samples = Object.keys({ ...await scrape(app), ...await scrape(failing) })
  const { panels } = JSON.parse(await readFile('examples/grafana-dashboard.json', 'utf8')) as {
    panels: { title: string, targets: { expr: string }[] }[]
  }
  t.ok(panels.length > 8)
  for (const { title, targets } of panels) {
    for (const { expr } of targets) {
      // On this dashboard, each metric is followed by its selector.
      const selectors = [...expr.matchAll(/\b([a-z]\w+)\{([^}]*)\}/g)]
      t.ok(selectors.length > 0, `${title}: ${expr}`)
      for (const [, name, matchers] of selectors) {
        const selected = [...matchers!.matchAll(/(\w+)=/g)].map(([, label]) => label!)
        const grouped = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(', ') ?? []
        const labels = [...selected, ...grouped].filter(label => !ADDED.includes(label))
        // Prometheus adds `up`.
        const exists = name === 'up' || samples.some(sample => sample.replace(/\{.*/, '') === name &&
          labels.every(label => new RegExp(`[{,]${label}="`).test(sample)))
        t.ok(exists, `${title}: ${name} by ${labels.join(', ') || 'nothing'}`)
      }
    }
  }
})

t.test('Every metric that there is an alert for exists', async t => {
  const samples = Object.keys(await scrape(app)).map(sample => sample.replace(/\{.*/, ''))
  const { groups } = parse(await readFile('examples/prometheus-alerts.yaml', 'utf8')) as {
    groups: { rules: { alert: string, expr: string }[] }[]
  }
  const rules = groups.flatMap(({ rules }) => rules)
  t.ok(rules.length > 5)
  for (const { alert, expr } of rules) {
    // Names of metrics contain an underscore, except for `up`, which Prometheus adds.
    const names = expr.match(/\b[a-z]+(_[a-z]+)+\b|\bup\b/g) ?? []
    t.ok(names.length > 0, alert)
    for (const name of names) t.ok(name === 'up' || samples.includes(name), `${alert}: ${name}`)
  }
})

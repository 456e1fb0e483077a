import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { Scope } from '../test/scope.ts'
import { startMailServer } from '../test/smtp.ts'
import { percentile } from '../test/statistics.ts'
import { startAlternative } from './alternative.ts'
import { startBaseline } from './baselines.ts'
import {
  BESIDE_EMAILS, type Case, CASES, LOGIN, REGISTER_FOR_DRAW, REGISTER_IN_LINE, TRACED, UNTRACED, WITHOUT_DRAW,
  WITHOUT_EMAILS,
} from './cases.ts'
import {
  addEvents, amountsOf, createFixture, type Fixture, type Postgres, prepareCommits, SERVICE, SERVICE_WARN,
  startService,
} from './fixture.ts'
import { get } from './http.ts'
import {
  compare, latency, measure, residentMemory, runningTime, settle, startRepeating,
} from './measure.ts'
import { interrupted, type Server } from './programs.ts'
import { atMost, fastEnough, type Results } from './results.ts'
import type { Amounts } from './seed.ts'

/** Shared by all parts of the benchmark. */
export interface Context {
  results: Results
  postgres: Postgres
  /** The folder of all files. */
  directory: string
  quick: boolean
  /** Selects what is measured, by name. */
  only: RegExp
}

/** The number of turns for cases with goals, for other cases, and in a quick run. */
export const TURNS = { judged: 7, shown: 3, quick: 2 }

/** Measures every case in turns: the service at two log levels, the baselines and the alternative, a process each. */
export async function measureCases ({ results, postgres, directory, quick, only }: Context) {
  const cases = CASES.filter(({ name }) => only.test(name))
  if (cases.length === 0) return
  const fixture = await createFixture(postgres, 'main', amountsOf(quick).main, directory)
  const services = await Promise.all([SERVICE, SERVICE_WARN].map(name => startService(fixture, name)))
  const service = services[0]!
  const alternatives = cases.some(({ alternative }) => alternative) ? [await startAlternative(fixture, service)] : []
  const commit = await prepareCommits(fixture)

  for (const operation of cases) {
    const { name, commits, targets } = operation
    const baseline = await startBaseline(results, fixture, service, operation)
    const start = performance.now()
    const writer = commits ? startRepeating(1000 / commits, commit) : undefined
    await compare(results, [
      ...services.map(server => ({ run: () => measure(results, fixture, server, operation) })),
      ...baseline.contenders,
      ...operation.alternative
        ? alternatives.map(server => ({ run: () => measure(results, fixture, server, operation), seldom: true }))
        : [],
    ], quick ? TURNS.quick : targets ? TURNS.judged : TURNS.shown)
    const pace = (await writer?.stop() ?? []).length / (performance.now() - start) * 1000
    if (commits && pace < commits * 0.9) results.fail(`${name}: only ${pace.toFixed(1)} commits/s`)
    await baseline.stop?.()

    for (const [of, defaults, warn] of targets ?? []) {
      results.goals[`${name}, ${defaults < 1 ? 'of' : 'times'} ${of}`] = [
        fastEnough(results.ratio(name, SERVICE, of), defaults), fastEnough(results.ratio(name, SERVICE_WARN, of), warn),
      ]
    }
    if (operation === LOGIN) await measureBesideLogins(results, fixture, services)
  }
  if (only.test('memory at rest')) {
    results.goals['memory at rest'] = [atMost(await memoryAtRest(fixture, service), 250, ' MB')]
  }
  await Promise.all([...services, ...alternatives].map(({ stop }) => stop()))
  await fixture.drop()
}

/** Measures the latency of the list of events while 64 connections sign in. */
async function measureBesideLogins (results: Results, fixture: Fixture, services: Server[]) {
  const p99: number[] = []
  for (const service of services) {
    const visitor = startRepeating(50, () => latency(`${service.url}/events`))
    for (let n = 0; n < 3; n++) await measure(results, fixture, service, LOGIN)
    p99.push(percentile(await visitor.stop(), 99))
  }
  results.goals['GET /events beside sign-ins, p99'] = [atMost(p99[0]!, 50, ' ms'), atMost(p99[1]!, 50, ' ms')]
}

/** The resident memory of a service after 20 idle seconds, in megabytes. */
export async function memoryAtRest (fixture: Fixture, service: Server) {
  await settle(fixture, service)
  await sleep(20_000, undefined, { signal: interrupted })
  return (await residentMemory(service)).now
}

/** Measures a service with tracing and a service without tracing in turns. */
export async function measureTracing ({ results, postgres, directory, quick, only }: Context) {
  const cases = TRACED.filter(({ name }) => only.test(name))
  if (cases.length === 0) return
  const fixture = await createFixture(postgres, 'traced', amountsOf(quick).main, directory)
  const collector = createServer((request, response) => request.resume().on('end', () => response.end('{}')))
  await once(collector.listen(0, '127.0.0.1'), 'listening')
  const OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
  const services = await Promise.all([
    startService(fixture, SERVICE, { OTEL_EXPORTER_OTLP_ENDPOINT }), startService(fixture, UNTRACED),
  ])
  for (const operation of cases) {
    const contenders = services.map(server => ({ run: () => measure(results, fixture, server, operation) }))
    await compare(results, contenders, quick ? TURNS.quick : TURNS.shown)
  }
  await Promise.all(services.map(({ stop }) => stop()))
  collector.closeAllConnections()
  collector.close()
  await fixture.drop()
}

/** A service that tells 5,000 people of a change, and one without emails on a database of its own, in turns. */
export async function measureEmails ({ results, postgres, directory, quick, only }: Context) {
  const { name } = BESIDE_EMAILS
  if (!only.test(name)) return
  const scope = new Scope()
  const { url: SMTP_URL, emails } = await startMailServer(scope)
  const amounts = amountsOf(quick).mailing
  const fixture = await createFixture(postgres, 'mailing', amounts, directory)
  const other = await createFixture(postgres, 'without-emails', amounts, directory)
  const service = await startService(fixture, SERVICE, {
    SMTP_URL, MAIL_FROM: 'community@example.org', FRONTEND_URL: 'https://app.example.org',
  })
  const without = await startService(other, WITHOUT_EMAILS)
  await moveEvent(fixture, service)
  while (emails.length === 0) await sleep(100, undefined, { signal: interrupted })

  const [{ start }] = await fixture.sql<[{ start: Date }]>`SELECT now() AS start`
  const sent = emails.length
  await compare(results, [
    { run: () => measure(results, fixture, service, BESIDE_EMAILS) },
    { run: () => measure(results, other, without, BESIDE_EMAILS) },
  ], quick ? TURNS.quick : TURNS.judged)
  if (emails.length === sent) results.fail(`${name}: no email was sent during it`)
  // Each claim is a commit, after which the list is read again.
  const [{ commits }] = await fixture.sql<[{ commits: number }]>`
    SELECT count(DISTINCT claimed_at) / extract(epoch FROM now() - ${start})::float AS commits
    FROM emails WHERE claimed_at > ${start}
  `
  results.goals[`${name}, of ${WITHOUT_EMAILS}`] = [fastEnough(results.ratio(name, SERVICE, WITHOUT_EMAILS), 0.9)]
  results.goals[`${name}: claims/s`] = [atMost(commits, 1)]
  await Promise.all([service, without].map(({ stop }) => stop()))
  await scope.end()
  await fixture.drop()
  await other.drop()
}

/** Registrations for events whose seats are drawn later, and for events whose seats pass to the first, in turns. */
export async function measureDraws ({ results, postgres, directory, quick, only }: Context) {
  const { name } = REGISTER_FOR_DRAW
  if (!only.test(name)) return
  const fixture = await createFixture(postgres, 'draws', amountsOf(quick).main, directory)
  const service = await startService(fixture)
  await compare(results, [
    { run: () => measure(results, fixture, service, REGISTER_FOR_DRAW) },
    { run: () => measure(results, fixture, { ...service, name: WITHOUT_DRAW }, REGISTER_IN_LINE) },
  ], quick ? TURNS.quick : TURNS.judged)
  results.goals[`${name}, of ${WITHOUT_DRAW}`] = [fastEnough(results.ratio(name, SERVICE, WITHOUT_DRAW), 1)]
  await service.stop()
  await fixture.drop()
}

/** Moves an event that all users are registered for. Its emails are sent at once. */
async function moveEvent (fixture: Fixture, { url }: Server) {
  const { sql, admins: [token] } = fixture
  const [event] = await addEvents(fixture, 1)
  await sql`UPDATE users SET email_verified_at = now()`
  await sql`INSERT INTO event_registrations (user_id, event_id) SELECT id, ${event!} FROM users`
  const { status } = await fetch(`${url}/events/${event}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ data: '2100-01-02' }),
  })
  if (status !== 200) throw new Error(`PUT /events/${event}: ${status}`)
  await sql`UPDATE email_batches SET due_at = now()`
}

/** Runs `use` with a service on a new database, which is dropped afterwards. */
async function withService (
  { postgres, directory }: Context, name: string, amounts: Amounts,
  use: (fixture: Fixture, service: Server) => Promise<void>
) {
  const fixture = await createFixture(postgres, name, amounts, directory)
  const service = await startService(fixture)
  await use(fixture, service)
  await service.stop()
  await fixture.drop()
}

const AFTER_COMMITS = 'GET /events after every commit'

/** Measures the list of events after every commit, on little data and on a hundred times as much. */
export async function measureGrowth (context: Context) {
  const { results, quick, only } = context
  if (!only.test(AFTER_COMMITS)) return
  const { small, grown } = amountsOf(quick)
  const medians: number[] = []
  for (const amounts of [small, grown]) {
    await withService(context, `of-${amounts.events}-events`, amounts, async (fixture, { url }) => {
      const { latencies, stale } = await readAfterCommits(fixture, url)
      const name = `${AFTER_COMMITS}, ${amounts.registrations!.toLocaleString('en')} registrations`
      const [p50, p99] = [50, 99].map(percent => percentile(latencies, percent)) as [number, number]
      results.add({ case: name, of: SERVICE, rate: 1000 / p50, p50, p99 })
      if (stale > 0) results.fail(`${name}: ${stale} responses are older than the last commit`)
      medians.push(p50)
    })
  }
  const growth = medians[1]! / medians[0]!
  results.goals[`${AFTER_COMMITS}, p50 on ${quick ? 10 : 100} times the data`] = [atMost(growth, 1.5)]
}

/** Reads the list of events for three seconds on one connection, with a commit after each response. */
async function readAfterCommits (fixture: Fixture, url: string) {
  const commit = await prepareCommits(fixture)
  const latencies: number[] = []
  let stale = 0
  const warm = performance.now() + 1000
  for (let expected = NaN; performance.now() < warm + 3000; await commit(), expected++) {
    const start = performance.now()
    const { body } = await get(`${url}/events`)
    if (start > warm) latencies.push(performance.now() - start)
    const { events } = JSON.parse(String(body)) as { events: { registrationCount: number }[] }
    const count = events.reduce((sum, { registrationCount }) => sum + registrationCount, 0)
    if (count < expected) stale++
    expected = count
  }
  return { latencies, stale }
}

const EXPORT = '/exports/users.csv'

/** Measures lists of 100,000 rows, one at a time: how long others wait for it, and the memory. */
export async function measureLarge (context: Context) {
  const { results, quick, only } = context
  const amounts = amountsOf(quick).large
  // The export first: the lists leave memory behind.
  const cases = [EXPORT, '/users', '/clubs', '/blogs'].map((path): Case => ({
    name: `GET ${path}, ${amounts.users!.toLocaleString('en')} rows`,
    prepare: async ({ admins }) => ({ load: { path, headers: { authorization: `Bearer ${admins[0]}` } } }),
  })).filter(({ name }) => only.test(name))
  if (cases.length > 0) {
    await withService(context, 'large', amounts, async (fixture, service) => {
      await fixture.sql`UPDATE blogs SET status = 'PUBLISHED' WHERE status <> 'PUBLISHED'`
      await fixture.sql`VACUUM ANALYZE blogs`
      await settle(fixture, service)
      const { now: atFirst } = await residentMemory(service)
      for (const operation of cases) {
        const others = startRepeating(5, () => runningTime(service, '/livez'))
        const { outcome: { bytes, requests }, ...measured } = await measure(results, fixture, service, operation, 1)
        const pause = Math.max(...await others.stop())
        results.add(measured)
        results.goals[`${operation.name}: longest pause`] = [atMost(pause, 50, ' ms')]
        const memory = measured.peak! - atFirst
        // An export is streamed, so its memory does not depend on its length.
        const [goal, verdict] = operation.name.includes(EXPORT)
          ? ['memory', atMost(memory, 128, ' MB')]
          : ['memory by the size of the response', atMost(memory * 1e6 / (bytes / requests), 3)]
        results.goals[`${operation.name}: ${goal}`] = [verdict]
      }
    })
  }
}

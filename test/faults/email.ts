// Two instances that send email through a server whose connections break, and are killed.
import { setTimeout as sleep } from 'node:timers/promises'

import type { EmailStatus } from '#lib/email/emails.js'
import { PostgresServer } from '../postgres-server.ts'
import { type MailServer, type Stage, startMailServer, STAGES } from '../smtp.ts'
import type { Teardown } from '../scope.ts'
import type { Fault, Setting } from './database.ts'
import { createFixture, type Fixture } from './fixture.ts'
import { openClient } from './http.ts'
import { rowOf } from './report.ts'
import { startService } from './service.ts'

/** A connection breaks at each stage, of so many. */
const TURN = 2 * STAGES.length

const METRICS_TOKEN = 'a-token-of-the-fault-tests'

export function emailFaults (setting: Setting): Fault[] {
  const name = 'email: SIGKILL of instances, cuts at every stage'
  return [{
    name,
    async run () {
      const { problems, note } = await killSenders(setting)
      return { ...rowOf(name, [], []), note, problems }
    },
  }]
}

async function killSenders ({ scope, directory, short }: Setting) {
  const emails = short ? 200 : 1000
  const primary = await PostgresServer.create(scope, directory)
  await primary.start()
  const server = await startMailServer(scope)
  server.fault = () => {
    const stage: Stage | undefined = STAGES[server.connections % TURN]
    return stage && { stage, silent: false }
  }
  const environment = {
    DATABASE_URL: primary.url(),
    MIGRATE_ON_START: 'true',
    SMTP_URL: server.url,
    MAIL_FROM: 'community@example.org',
    STOP_DELAY: '0',
    METRICS_TOKEN,
  }
  const reads = { hits: 0, misses: 0 }
  const start = async () => {
    const service = await startService(scope, directory, environment)
    return { ...service, reader: startReader(scope, service.url, reads) }
  }
  const instances = [await start(), await start()]
  const fixture = await createFixture(primary.url())
  await fixture.look(sql => sql`
    INSERT INTO emails (template, bulk, user_id, data)
    SELECT 'test', false, id, '{}' FROM users, generate_series(1, 10) LIMIT ${emails}
  `)

  const kill = async (n: number) => {
    await instances[n]!.reader.stop()
    instances[n]!.child.kill('SIGKILL')
    await instances[n]!.ended
    instances[n] = await start()
  }
  let kills = 0
  const deadline = performance.now() + 600_000
  while (await hasWork(fixture) && performance.now() < deadline) {
    await sleep(500 + 2000 * Math.random())
    // Some kills, then the rest undisturbed.
    if (kills < (short ? 3 : 20)) await kill(kills++ % 2)
  }
  await Promise.all(instances.map(({ reader }) => reader.stop()))
  await sleep(1000)
  const { problems, note } = await judge(fixture, server, emails, kills)
  const { hits, misses } = reads
  const share = Math.round(100 * hits / (hits + misses))
  return { problems, note: `${note}; ${share} % of ${hits + misses} reads meanwhile were hits` }
}

/** Reads public lists until it is stopped, and then adds the hits and misses of that process. */
function startReader (scope: Teardown, url: string, reads: { hits: number, misses: number }) {
  const client = openClient(url, 1, 5000)
  scope.teardown(client.end)
  const stopping = new AbortController()
  const reading = (async () => {
    while (!stopping.signal.aborted) {
      for (const path of ['/events', '/clubs', '/mentors', '/blogs']) await client.send({ method: 'GET', path })
      await sleep(10)
    }
  })()
  return {
    async stop () {
      stopping.abort()
      await reading
      const { body } = await client.send({ method: 'GET', path: '/metrics', token: METRICS_TOKEN })
      for (const name of ['hits', 'misses'] as const) {
        reads[name] += Number(new RegExp(`^response_cache_${name}_total (\\d+)`, 'm').exec(body)![1])
      }
    },
  }
}

/** Whether emails wait. Backoff and leases are shortened: the killed instances will not return. */
async function hasWork ({ look }: Fixture) {
  const [row] = await look(sql => sql<[{ count: number }]>`
    WITH sooner AS (
      UPDATE emails SET due_at = now()
      WHERE status = 'pending' AND due_at > now()
        AND (due_at <> claimed_at + interval '300 s' OR claimed_at < now() - interval '20 s')
    )
    SELECT count(*)::int FROM emails WHERE status = 'pending'
  `)
  return row.count > 0
}

/** Maximum number of emails that a killed sender has claimed or sent without recording. */
const CLAIMED = 24

/** Each email arrives, and twice only if its connection broke after its last byte, or its sender was killed. */
async function judge ({ look }: Fixture, server: MailServer, emails: number, kills: number) {
  const counts = server.counts()
  const rows = await look(sql => sql<{ id: string, status: EmailStatus }[]>`SELECT id, status FROM emails`)
  const problems = rows.length === emails ? [] : [`${rows.length} of ${emails} emails are left`]
  for (const { id, status } of rows) {
    const count = counts.get(id) ?? 0
    if (status !== 'sent' || count === 0) problems.push(`email ${id} is ${status} and arrived ${count} times`)
  }
  const again = [...counts.values()].reduce((sum, count) => sum + count - 1, 0)
  const lost = server.breaks.filter(stage => stage === 'response').length
  if (again > lost + kills * CLAIMED) problems.push(`${again} emails came again, of ${lost} without a response`)
  return {
    problems: problems.slice(0, 5),
    note: `${kills} kills: all ${emails} arrived, ${again} again, ${lost} of them since the response was lost`,
  }
}

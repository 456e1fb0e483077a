// Two instances that send mail through a server whose connections break, and that are killed meanwhile.
import { setTimeout as sleep } from 'node:timers/promises'

import type { MailState } from '#lib/mail/outbox.js'
import { Cluster } from '../cluster.ts'
import { type Stage, startMailServer, STAGES } from '../smtp.ts'
import type { Fault, Setting } from './database.ts'
import { createFixture, type Fixture } from './fixture.ts'
import { rowOf } from './report.ts'
import { startService } from './service.ts'

/** How many connections break at each stage, of so many. */
const TURN = 2 * STAGES.length

export function mailFaults (setting: Setting): Fault[] {
  const name = 'mail: SIGKILL of instances, cuts at every stage'
  return [{
    name,
    async run () {
      const { problems, note } = await killSenders(setting)
      return { ...rowOf(name, [], []), note, problems }
    },
  }]
}

async function killSenders ({ scope, directory, short }: Setting) {
  const mails = short ? 200 : 1000
  const cluster = await Cluster.create(scope, directory)
  await cluster.start()
  const server = await startMailServer(scope)
  server.fault = () => {
    const stage: Stage | undefined = STAGES[server.connections % TURN]
    return stage && { stage, silent: false }
  }
  const environment = {
    DATABASE_URL: cluster.url(),
    MIGRATE_ON_START: 'true',
    SMTP_URL: server.url,
    MAIL_FROM: 'community@example.org',
    STOP_DELAY: '0',
  }
  const start = () => startService(scope, directory, environment)
  const instances = [await start(), await start()]
  const fixture = await createFixture(cluster.url())
  await fixture.look(sql => sql`
    INSERT INTO mails (kind, bulk, user_id, data)
    SELECT 'test', false, id, '{}' FROM users, generate_series(1, 10) LIMIT ${mails}
  `)

  let kills = 0
  const deadline = performance.now() + 600_000
  while (await hasWork(fixture) && performance.now() < deadline) {
    await sleep(500 + 2000 * Math.random())
    // Some kills, then the rest undisturbed.
    if (kills < (short ? 3 : 20)) {
      const n = kills++ % 2
      instances[n]!.child.kill('SIGKILL')
      await instances[n]!.ended
      instances[n] = await start()
    }
  }
  await sleep(1000)
  return judge(fixture, server.counts(), mails, kills)
}

/** Whether mails are not settled. Backoff and claims are shortened: the killed instances will not return. */
async function hasWork ({ look }: Fixture) {
  const [row] = await look(sql => sql<[{ count: number }]>`
    WITH sooner AS (
      UPDATE mails SET due_at = CASE status WHEN 'pending' THEN now() ELSE due_at - interval '250 seconds' END
      WHERE (status = 'pending' AND due_at > now())
        OR (status = 'processing' AND due_at BETWEEN now() + interval '240 s' AND now() + interval '290 s')
    )
    SELECT count(*)::int FROM mails WHERE status IN ('pending', 'processing')
  `)
  return row.count > 0
}

/** Each Message-ID arrives once or not at all, and not at all only if the mail is unknown or has failed. */
async function judge ({ look }: Fixture, counts: Map<string, number>, mails: number, kills: number) {
  const rows = await look(sql => sql<{ id: string, status: MailState }[]>`SELECT id, status FROM mails`)
  const problems = rows.length === mails ? [] : [`${rows.length} of ${mails} mails are left`]
  const found = { sent: 0, unknown: 0, arrived: 0, failed: 0 }
  for (const { id, status } of rows) {
    const count = counts.get(`${id}@example.org`) ?? 0
    if (count > 1) problems.push(`mail ${id} arrived ${count} times`)
    if (status === 'sent' ? count !== 1 : !['unknown', 'failed'].includes(status)) {
      problems.push(`mail ${id} is ${status} and arrived ${count} times`)
    }
    if (status === 'sent' || status === 'failed') found[status]++
    if (status === 'unknown') found.unknown++
    if (status === 'unknown' && count === 1) found.arrived++
  }
  const { sent, unknown, arrived, failed } = found
  return {
    problems: problems.slice(0, 5),
    note: `${kills} kills: ${sent} sent, ${failed} failed, ${unknown} unknown, of which ${arrived} have arrived`,
  }
}

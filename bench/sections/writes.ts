import { REGISTER_ONE, WRITES } from '../cases.ts'
import { measurePgbench, PLAIN_INSERT, preparePgbench, SAME_STATEMENT } from '../floors.ts'
import type { Findings } from '../measure.ts'
import { compareRegistrations } from '../peers.ts'
import type { Server } from '../programs.ts'
import { addEvents, type World } from '../world.ts'
import { CONNECTIONS } from './reads.ts'

/** Registrations and likes; beside those for one event what peers and pgbench make of them. Stops the peers. */
export async function measureWrites (findings: Findings, world: World, service: Server, peers: Server[]) {
  const operations = WRITES.filter(({ name }) => findings.wants(name))
  for (const operation of operations) {
    const isJudged = operation === REGISTER_ONE
    for (const connections of CONNECTIONS) {
      if (!isJudged || connections !== 64) await findings.measure(world, service, operation, connections)
    }
    if (isJudged) {
      await measurePeers(findings, world, service, peers)
      await measureBesidePgbench(findings, world, service)
      await checkRegistrations(findings, world, service)
    }
  }
  if (operations.length > 0) await checkCounts(findings, world, service)
}

async function measurePeers (findings: Findings, world: World, service: Server, peers: Server[]) {
  for (const peer of peers) {
    const difference = await compareRegistrations(world, service, peer)
    if (difference) findings.fail(difference)
    await findings.measure(world, peer, REGISTER_ONE, 64)
    // Leaves its database connections to pgbench.
    await peer.stop()
  }
}

/** Registrations for one event, in turns with the plain inserts that they are judged by. */
async function measureBesidePgbench (findings: Findings, world: World, service: Server) {
  await preparePgbench(world)

  async function pgbench (target: string, statement: Parameters<typeof measurePgbench>[1]) {
    const rate = await measurePgbench(world, statement, 64, findings.options.seconds)
    return { case: REGISTER_ONE.name, target, world: world.name, connections: 64, rate }
  }
  await findings.compare([
    () => findings.run(world, service, REGISTER_ONE, 64),
    () => pgbench(PLAIN_INSERT, 'plain-insert'),
  ])
  findings.add(await pgbench(SAME_STATEMENT, 'same-statement'))
}

/** How many register at the same time, some of them twice. */
const REGISTRANTS = 1000

/** Registers many users for one event at once: those who got 201 must be the rows, no more and no less. */
async function checkRegistrations (findings: Findings, world: World, service: Server) {
  const { ids: [event] } = await addEvents(world, 1)
  const tokens = world.users.slice(0, REGISTRANTS)
  const statuses = { 201: 0, 400: 0 } as Record<number, number>
  const registered: string[] = []
  const waiting = [...tokens, ...tokens.slice(0, REGISTRANTS / 10)]
  await Promise.all(Array.from({ length: 64 }, async () => {
    for (let token = waiting.pop(); token; token = waiting.pop()) {
      const response = await fetch(`${service.url}/events/${event}/register`, {
        method: 'POST', headers: { authorization: `Bearer ${token}` },
      })
      const { registration } = await response.json() as { registration?: { id: string } }
      statuses[response.status] = (statuses[response.status] ?? 0) + 1
      if (response.status === 201) registered.push(registration!.id)
    }
  }))
  const rows = await world.sql<{ id: string }[]>`SELECT id FROM event_registrations WHERE event_id = ${event!}`
  const isRow = new Set(rows.map(({ id }) => id))
  const exact = rows.length === tokens.length && registered.length === tokens.length &&
    registered.every(id => isRow.has(id)) && statuses[400] === REGISTRANTS / 10
  findings.facts['every 201 is a row'] = exact
  if (!exact) findings.fail(`Registrations: ${JSON.stringify(statuses)}, ${rows.length} rows`)
}

/** Compares the counts that the lists show with the rows. */
async function checkCounts (findings: Findings, { sql }: World, service: Server) {
  const counts = await sql<{ id: string, count: number }[]>`
    SELECT events.id, count(registrations.id)::int AS count
    FROM events LEFT JOIN event_registrations AS registrations ON event_id = events.id GROUP BY events.id
    UNION ALL
    SELECT mentors.id, count(likes.user_id)::int
    FROM mentors LEFT JOIN mentor_likes AS likes ON mentor_id = mentors.id GROUP BY mentors.id
  `
  const real = new Map(counts.map(({ id, count }) => [id, count]))
  const get = async (path: string) => (await fetch(service.url + path)).json()
  const { events } = await get('/events?limit=1000000') as { events: { id: string, registrationCount: number }[] }
  const { mentors } = await get('/mentors') as { mentors: { id: string, likeCount: number }[] }
  const shown = [
    ...events.map(({ id, registrationCount }) => ({ id, count: registrationCount })),
    ...mentors.map(({ id, likeCount }) => ({ id, count: likeCount })),
  ]
  const wrong = shown.filter(({ id, count }) => real.get(id) !== count)
  findings.facts['counts are exact'] = wrong.length === 0 && shown.length === real.size
  if (wrong.length > 0) findings.fail(`${wrong.length} of ${shown.length} counts in the lists are wrong`)
}

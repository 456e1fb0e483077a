import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { BLOG, LISTS } from './cases.ts'
import { get } from './http.ts'
import { script, source } from './paths.ts'
import { run, type Server, startServer } from './programs.ts'
import { addEvents, type World } from './world.ts'

/** How the tables call the floors. */
export const HTTP = 'node:http'
export const PLAIN_INSERT = 'pgbench, plain'
export const SAME_STATEMENT = 'pgbench, same'
/** By how many are verified at once; the pool has four threads. */
export const ARGON2 = { 2: 'argon2, 2 at once', 4: 'argon2, 4 at once' }

/** What every server of node:http sends without being told. */
const OF_NODE = ['date', 'connection', 'keep-alive']

/** Starts a bare node:http server that sends what the service answers now, with the same headers. */
export async function startHttpFloor (world: World, service: Server) {
  const answers: Record<string, { file: string, headers: string[] }> = {}
  for (const operation of [...LISTS, BLOG]) {
    const { load: { path } } = await operation.prepare(world, service)
    // What is repeated has one header less, the id of the request.
    await get(service.url + path)
    const { headers, body } = await get(service.url + path)
    const file = join(world.directory, `answer-${Object.keys(answers).length}`)
    await writeFile(file, body)
    const own = Object.entries(headers).filter(([name]) => !OF_NODE.includes(name))
    answers[path] = { file, headers: own.flatMap(([name, value]) => [name, String(value)]) }
  }
  return startServer({
    name: HTTP,
    script: script('bench/floors/http.js'),
    directory: world.directory,
    env: { ANSWERS: JSON.stringify(answers) },
    ready: '/blogs',
  })
}

/** Passwords verified a second, so many at once, with nothing else to do. */
export async function measureArgon2 (atOnce: keyof typeof ARGON2, seconds: number) {
  return Number(await run(process.execPath, [script('bench/floors/argon2.js'), String(seconds), String(atOnce)]))
}

/** Makes what pgbench inserts into. */
export async function preparePgbench (world: World) {
  await addEvents(world, 100)
  await world.sql.unsafe(await readFile(source('floors/tables.sql'), 'utf8'))
}

/**
 * Registrations a second that pgbench makes with a statement of `floors/`, all for one event after another. The plain
 * one begins with an empty table each time.
 */
export async function measurePgbench (
  { databaseUrl, sql }: World, statement: 'plain-insert' | 'same-statement', clients: number, seconds: number
) {
  await sql`TRUNCATE floor.event_registrations`
  const [count] = await sql<{ users: number }[]>`SELECT count(*)::int AS users FROM floor.users`
  const variables = { x: -1, users: count!.users, clients }
  const stdout = await run('pgbench', [
    '--no-vacuum', '--protocol', 'prepared', '--client', String(clients), '--jobs', String(Math.min(clients, 2)),
    '--time', String(seconds), '--file', source(`floors/${statement}.sql`),
    ...Object.entries(variables).flatMap(([name, value]) => ['--define', `${name}=${value}`]),
    databaseUrl,
  ])
  return Number(/tps = ([\d.]+)/.exec(stdout)![1])
}

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import argon2 from 'argon2'

import { type Case, HTTP, PGBENCH } from './cases.ts'
import type { Fixture } from './fixture.ts'
import { get } from './http.ts'
import { type Contender, measure } from './measure.ts'
import { compiled, run, type Server, source, startServer } from './programs.ts'
import type { Results } from './results.ts'

/** Starts the baseline of a case. Returns its contender and a function that stops it. */
export async function startBaseline (
  results: Results, fixture: Fixture, service: Server, operation: Case
): Promise<{ contenders: Contender[], stop? (): Promise<void> }> {
  const { name, baseline } = operation
  if (!baseline) return { contenders: [] }
  if (baseline === HTTP) {
    const server = await startHttp(fixture, service, operation)
    return { contenders: [{ run: () => measure(results, fixture, server, operation) }], stop: server.stop }
  }
  if (baseline === PGBENCH) await fixture.sql.unsafe(await readFile(source('baselines/tables.sql'), 'utf8'))
  const rate = baseline === PGBENCH ? pgbench : verifyPasswords
  return { contenders: [{ run: async () => ({ case: name, of: baseline, rate: await rate(fixture) }) }] }
}

/** Verifies four passwords at once, on an idle machine. Returns the rate per second. */
async function verifyPasswords ({ password, hash }: Fixture) {
  const start = performance.now()
  let verified = 0
  await Promise.all(Array.from({ length: 4 }, async () => {
    for (; performance.now() - start < 2000; verified++) await argon2.verify(hash, password)
  }))
  return verified / (performance.now() - start) * 1000
}

/** Inserts registrations with pgbench into an empty table. Returns the rate per second. */
async function pgbench ({ databaseUrl, sql }: Fixture) {
  await sql`TRUNCATE baseline.event_registrations`
  const stdout = await run('pgbench', [
    '--no-vacuum', '--protocol', 'prepared', '--client', '64', '--jobs', '2', '--time', '2', '--define', 'x=-1',
    '--file', source('baselines/insert.sql'), databaseUrl,
  ])
  return Number(/tps = ([\d.]+)/.exec(stdout)?.[1])
}

/** Headers that Node.js adds. */
const BY_NODE = ['date', 'connection', 'keep-alive']

/** A bare node:http server that sends the response of the service to this case. */
async function startHttp (fixture: Fixture, service: Server, { name, prepare }: Case) {
  const { load: { path, headers } } = await prepare(fixture, service.url)
  const { status, rawHeaders, body } = await get(service.url + path, headers)
  const RESPONSE = join(fixture.directory, `${name.replaceAll(/\W+/g, '-')}.json`)
  const sent = rawHeaders.filter((_text, n) => !BY_NODE.includes(rawHeaders[n - n % 2]!.toLowerCase()))
  await writeFile(RESPONSE, JSON.stringify({ status, headers: sent, body: body.toString('base64') }))
  const command = [process.execPath, compiled('baselines/http.js')]
  return startServer({ name: HTTP, command, env: { RESPONSE }, directory: fixture.directory, path: '/' })
}

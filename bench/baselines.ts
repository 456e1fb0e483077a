import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import argon2 from 'argon2'

import { ARGON2, HTTP, PGBENCH, PROFILE } from './cases.ts'
import { type Fixture, JWT_SECRET } from './fixture.ts'
import { get } from './http.ts'
import { type Case, type Contender, measure } from './measure.ts'
import { compiled, run, type Server, source, startServer } from './programs.ts'
import type { Results } from './results.ts'

/** Starts the baseline of a case. Returns its contenders and a function that stops it. */
export async function startBaseline (
  results: Results, fixture: Fixture, service: Server, operation: Case
): Promise<{ contenders: Contender[], stop? (): Promise<void> }> {
  const { name, baseline } = operation
  if (!baseline) return { contenders: [] }
  if (baseline === 'argon2') {
    const contend = (atOnce: 2 | 4) => ({
      run: async () => ({ case: name, of: ARGON2[atOnce], rate: await verifyPasswords(fixture, atOnce) }),
    })
    return { contenders: [contend(2), contend(4)] }
  }
  if (baseline === 'pgbench') {
    await fixture.sql.unsafe(await readFile(source('baselines/tables.sql'), 'utf8'))
    return { contenders: [{ run: async () => ({ case: name, of: PGBENCH, rate: await pgbench(fixture) }) }] }
  }
  const server = await (baseline === 'http' ? startHttp : startProfile)(fixture, service, operation)
  return { contenders: [{ run: () => measure(results, fixture, server, operation) }], stop: server.stop }
}

/** Verifies passwords, so many concurrently, on an idle machine. Returns the rate per second. */
async function verifyPasswords ({ password, hash }: Fixture, atOnce: number) {
  const start = performance.now()
  let verified = 0
  await Promise.all(Array.from({ length: atOnce }, async () => {
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

function without (names: string[], rawHeaders: string[]) {
  return rawHeaders.filter((_text, n) => !names.includes(rawHeaders[n - n % 2]!.toLowerCase()))
}

function startScript (name: string, script: string, env: Record<string, string>, { directory }: Fixture) {
  return startServer({ name, command: [process.execPath, compiled(`baselines/${script}`)], env, directory, path: '/' })
}

/** A bare node:http server that sends the response of the service to this case. */
async function startHttp (fixture: Fixture, service: Server, { name, prepare }: Case) {
  const { load: { path, headers } } = await prepare(fixture, service.url)
  const { status, rawHeaders, body } = await get(service.url + path, headers)
  const file = join(fixture.directory, `${name.replaceAll(/\W+/g, '-')}.json`)
  const response = { status, headers: without(BY_NODE, rawHeaders), body: body.toString('base64') }
  await writeFile(file, JSON.stringify(response))
  return startScript(HTTP, 'http.js', { RESPONSE: file }, fixture)
}

/** GET /auth/me on node:http, node:crypto and postgres.js only. */
async function startProfile (fixture: Fixture, service: Server) {
  const read = ({ url }: Server) => get(`${url}/auth/me`, { authorization: `Bearer ${fixture.students[0]}` })
  const { rawHeaders, body } = await read(service)
  // The length differs between users.
  const headers = JSON.stringify(without([...BY_NODE, 'content-length'], rawHeaders))
  const env = { DATABASE_URL: fixture.databaseUrl, JWT_SECRET, HEADERS: headers }
  const server = await startScript(PROFILE, 'profile.js', env, fixture)
  assert.equal(String((await read(server)).body), String(body))
  return server
}

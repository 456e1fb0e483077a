// A server with certificates of a private authority: the service and the migrations get what DATABASE_URL asks for, and
// libpq the same where its psql is installed.
import { execFile } from 'node:child_process'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import postgres from 'postgres'
import t from 'tap'

import { openDatabase } from '#lib/database/pools.js'
import { migrate } from '#lib/database/migrations.js'
import { newestBin } from '../../faults/programs.ts'
import { testConfig } from '../../helper.ts'
import { PostgresServer } from '../../postgres-server.ts'

const run = promisify(execFile)
const log = { info () {}, warn () {} }
const PASSWORD = 'p@ss/w:rd%+ #?ä'

const server = await PostgresServer.create(t)
const file = (name: string) => join(server.home, name)

/** Makes an authority, or with `by` a certificate that this authority signs. */
async function certify (name: string, subject: string, { by, names, days = '2' }: {
  by?: string, names?: string, days?: string
} = {}) {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', file(`${name}.key`)]
  if (!by) {
    await run('openssl', ['req', '-x509', ...key, '-out', file(`${name}.pem`), '-days', days, '-subj', subject])
  } else {
    await writeFile(file('extensions'), names ? `subjectAltName=${names}\n` : '')
    await run('openssl', ['req', ...key, '-out', file('request'), '-subj', subject])
    await run('openssl', ['x509', '-req', '-in', file('request'), '-CA', file(`${by}.pem`), '-CAkey', file(`${by}.key`),
      '-CAcreateserial', '-extfile', file('extensions'), '-days', days, '-out', file(`${name}.pem`)])
  }
  await chmod(file(`${name}.key`), 0o600)
  await server.own(file(`${name}.key`))
}

await certify('ca', '/CN=Authority')
await certify('other', '/CN=Another authority')
await certify('right', '/CN=server', { by: 'ca', names: 'DNS:localhost,IP:127.0.0.1' })
await certify('name', '/CN=server', { by: 'ca', names: 'DNS:localhost' })
await certify('elsewhere', '/CN=server', { by: 'ca', names: 'DNS:db.example.org,IP:10.0.0.1' })
await certify('expired', '/CN=server', { by: 'ca', names: 'DNS:localhost,IP:127.0.0.1', days: '-1' })
await certify('ada', '/CN=ada', { by: 'ca' })

await server.configure(`
  listen_addresses = '127.0.0.1, ::1'
  unix_socket_directories = '${server.home}'
  ssl = on
  ssl_cert_file = '${file('right.pem')}'
  ssl_key_file = '${file('right.key')}'
  ssl_ca_file = '${file('ca.pem')}'
`)
await writeFile(join(server.data, 'pg_hba.conf'), `
local   all     all             trust
host    open    all      all    trust
hostssl certs   ada      all    cert
hostssl closed  ada      all    scram-sha-256
hostssl closed  postgres all    trust
`)
await server.start()

const socket = encodeURIComponent(server.home)
const administration = postgres({ path: `${server.home}/.s.PGSQL.${server.port}`, username: 'postgres', max: 1 })
t.teardown(() => administration.end())
for (const name of ['open', 'closed', 'certs']) await administration`CREATE DATABASE ${administration(name)}`
await administration.unsafe(`CREATE ROLE ada SUPERUSER LOGIN PASSWORD '${PASSWORD}'`)
for (const name of ['open', 'closed', 'certs']) await migrate(`postgres://postgres@/${name}?host=${socket}&port=${server.port}`)

/** Has the server show this certificate. */
async function show (certificate: string) {
  await set({ ssl_cert_file: file(`${certificate}.pem`), ssl_key_file: file(`${certificate}.key`) })
}

async function set (settings: Record<string, string>) {
  for (const [name, value] of Object.entries(settings)) {
    await administration.unsafe(`ALTER SYSTEM SET ${name} = '${value}'`)
  }
  const [before] = await administration`SELECT pg_conf_load_time() AS time`
  await administration`SELECT pg_reload_conf()`
  // The postmaster loads it before its children do.
  while ((await administration`SELECT pg_conf_load_time() AS time`)[0]!.time <= before!.time);
}

const settled = (connecting: Promise<unknown>) => connecting.then(() => 'connected', (error: Error) => error.message)

/** Whether the service is encrypted, or why it does not connect. */
async function start (url: string) {
  const { sql, close } = await openDatabase(testConfig({ DATABASE_URL: url }), log)
  const [row] = await sql<{ ssl: boolean }[]>`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`
  await close()
  return row!.ssl
}

const bin = await newestBin()
if (!bin) t.comment('apt-get install postgresql compares all of this with psql')

const psql = (url: string) =>
  settled(run(join(bin!, 'psql'), [url, '--command', 'SELECT'], { env: { HOME: server.home } }))

/** Tries an address with each driver. Returns whether they are encrypted, or the reason why not. */
async function attempt (url: string) {
  const service = await start(url).catch((error: Error) => error.message)
  const migration = await settled(migrate(url))
  return { service, migration }
}

const root = (name: string) => `sslrootcert=${file(`${name}.pem`)}`
const UNKNOWN = /self.signed certificate|unable to (verify|get)/
const MISMATCH = /does not match certificate's altnames|is not in the cert's list/
const EXPIRED = /certificate has expired/
const PLAIN = /no encryption/

/** The certificate that is shown, the address, and whether that is encrypted, or the reason why it fails. */
const CASES: [string, string, boolean | RegExp, differs?: string][] = [
  ['right', 'localhost/open', true],
  ['right', 'localhost/open?sslmode=disable', false],
  ['right', 'localhost/closed', true],
  ['right', 'localhost/closed?sslmode=disable', PLAIN],
  ['right', `localhost/closed?${root('ca')}`, true],
  ['right', `localhost/closed?${root('ca')}&sslmode=verify-full`, true],
  ['right', `127.0.0.1/closed?${root('ca')}&sslmode=verify-full`, true],
  ['right', `localhost/closed?${root('other')}`, UNKNOWN],
  ['right', `localhost/closed?${root('other')}&sslmode=require`, UNKNOWN],
  ['right', `localhost/closed?${root('other')}&sslmode=verify-ca`, UNKNOWN],
  ['right', 'localhost/closed?sslmode=verify-full', UNKNOWN],
  ['right', 'localhost/closed?sslmode=require', true],
  ['right', 'localhost/closed?sslrootcert=system', UNKNOWN, 'from psql 16 on'],
  ['right', 'localhost/closed?sslmode=require&channel_binding=require', UNKNOWN],
  ['right', `localhost/closed?${root('ca')}&channel_binding=require`, true, 'trust binds no channel'],
  ['name', `localhost/closed?${root('ca')}&sslmode=verify-full`, true],
  ['name', `127.0.0.1/closed?${root('ca')}&sslmode=verify-full`, MISMATCH],
  ['elsewhere', 'localhost/closed?sslmode=require', true],
  ['elsewhere', `localhost/closed?${root('ca')}&sslmode=require`, true],
  ['elsewhere', `localhost/closed?${root('ca')}&sslmode=verify-ca`, true],
  ['elsewhere', `localhost/closed?${root('ca')}&sslmode=verify-full`, MISMATCH],
  ['elsewhere', `127.0.0.1/closed?${root('ca')}&sslmode=verify-full`, MISMATCH],
  ['expired', 'localhost/closed?sslmode=require', true],
  ['expired', `localhost/closed?${root('ca')}&sslmode=verify-ca`, EXPIRED],
  ['expired', `localhost/closed?${root('ca')}&sslmode=verify-full`, EXPIRED],
]

t.test('A server with certificates of its own authority', async t => {
  let shown = 'right'
  for (const [certificate, address, expected, differs] of CASES) {
    if (certificate !== shown) await show(shown = certificate)
    const name = `${certificate}: ${address.replaceAll(`${server.home}/`, '')}`
    const url = `postgres://postgres@${address.replace('/', `:${server.port}/`)}`
    const { service, migration } = await attempt(url)
    if (typeof expected === 'boolean') {
      t.equal(service, expected, `${name}: the service`)
      t.equal(migration, 'connected', `${name}: migrations`)
    } else {
      t.match(service, expected, `${name}: the service`)
      t.match(migration, expected, `${name}: migrations`)
    }
    if (!bin || differs) continue
    t.equal(await psql(url) === 'connected', typeof expected === 'boolean', `${name}: psql`)
  }
})

t.test('A server without TLS', async t => {
  await set({ ssl: 'off' })
  const url = `postgres://postgres@localhost:${server.port}/open`
  t.strictSame(await attempt(url), { service: false, migration: 'connected' })
  t.strictSame(await attempt(`${url}?sslmode=require`), {
    service: `Cannot reach the database at localhost:${server.port}/open: the server has no TLS`,
    migration: 'The server does not support SSL connections',
  })
  await set({ ssl: 'on' })
})

t.test('Other ways to the server', async t => {
  await show('right')
  const password = encodeURIComponent(PASSWORD)
  const ways = {
    'a password of all characters': `postgres://ada:${password}@127.0.0.1:${server.port}/closed`,
    'a client certificate': `postgres://ada@127.0.0.1:${server.port}/certs?sslmode=verify-full&${root('ca')}` +
      `&sslcert=${file('ada.pem')}&sslkey=${file('ada.key')}`,
    'a socket as host': `postgres://ada@${socket}:${server.port}/open`,
    'a socket as parameter': `postgres:///open?host=${socket}&port=${server.port}&user=ada&sslmode=require`,
    IPv6: `postgres://ada@[::1]:${server.port}/open?sslmode=disable`,
    'a time limit, settings and a name':
      `postgres://ada@127.0.0.1:${server.port}/open?connect_timeout=2&options=-c%20geqo%3Doff&application_name=me`,
  }
  for (const [name, url] of Object.entries(ways)) {
    const isEncrypted = !/open/.test(url) || name.includes('name')
    t.strictSame(await attempt(url), { service: isEncrypted, migration: 'connected' }, name)
    if (bin) t.equal(await psql(url), 'connected', `${name}: psql`)
  }
  const { sql, close } = await openDatabase(testConfig({ DATABASE_URL: Object.values(ways).at(-1) }), log)
  t.teardown(close)
  const [settings] = await sql`SELECT current_setting('geqo') AS geqo, current_setting('application_name') AS name`
  t.strictSame(settings, { geqo: 'off', name: 'me' })
  await t.rejects(start(`postgres://ada:wrong@127.0.0.1:${server.port}/closed`), /password authentication failed/)
})

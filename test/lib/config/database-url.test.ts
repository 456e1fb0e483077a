import { readDatabaseUrl } from '#lib/config/database-url.js'
import { StartupError } from '#lib/config/startup-error.js'
import t from '../../suite.ts'

const UNSET = { user: undefined, password: undefined, database: undefined }
const DEFAULTS = {
  host: 'localhost',
  port: 5432,
  ...UNSET,
  ssl: 'prefer',
  connectTimeoutSeconds: undefined,
  targetSessionAttrs: undefined,
  startup: {},
}
const VERIFIED = { rejectUnauthorized: true }

t.test('An address has the same parts as in libpq', async t => {
  const addresses: [string, object][] = [
    ['postgres://', {}],
    ['postgresql:///x', { database: 'x' }],
    ['postgres://db', { host: 'db' }],
    ['postgres://:5433/x', { port: 5433, database: 'x' }],
    ['postgres://ada@db', { host: 'db', user: 'ada' }],
    ['postgres://ada:a%40b%2Fc%3A%25%23%3F+%20%C3%A4@db', { host: 'db', user: 'ada', password: 'a@b/c:%#?+ ä' }],
    ['postgres://ada:a#b?c d:e;[f]@db:5433', { host: 'db', port: 5433, user: 'ada', password: 'a#b?c d:e;[f]' }],
    ['postgres://ada:p@ss@db/x', { host: 'db', user: 'ada', password: 'p@ss', database: 'x' }],
    ['postgres://a%40example.org@db/a%2Fb', { host: 'db', user: 'a@example.org', database: 'a/b' }],
    ['postgres://u:p@[::1]:5433/x', { host: '::1', port: 5433, user: 'u', password: 'p', database: 'x' }],
    ['postgres://[fe80::1%25eth0]', { host: 'fe80::1%eth0' }],
    ['postgres://u@%2Fvar%2Frun%2Fpostgresql/x', { host: '/var/run/postgresql', user: 'u', database: 'x', ssl: false }],
    ['postgres://u:p@/x?host=/var/run/postgresql&port=5433',
      { host: '/var/run/postgresql', port: 5433, user: 'u', password: 'p', database: 'x', ssl: false }],
    ['postgres://db/x?user=u&password=a%2Bb+c&dbname=y&host=other',
      { host: 'other', user: 'u', password: 'a+b+c', database: 'y' }],
    ['postgres://db?connect_timeout=3&application_name=a%20b&options=-c%20geqo%3Doff&gssencmode=disable&client_encoding=utf8',
      { host: 'db', connectTimeoutSeconds: 3, startup: { application_name: 'a b', options: '-c geqo=off' } }],
    ['postgres://db?connect_timeout=0&target_session_attrs=any&sslmode=', { host: 'db' }],
    ['postgres://db?target_session_attrs=primary', { host: 'db', targetSessionAttrs: 'primary' }],
  ]
  for (const [url, server] of addresses) t.strictSame(readDatabaseUrl(url), { ...DEFAULTS, ...server }, url)
})

t.test('sslmode and related parameters work as in libpq', async t => {
  const ca = '-----BEGIN CERTIFICATE-----'
  const file = `${t.testdir({ 'ca.pem': ca })}/ca.pem`
  const unverified = { rejectUnauthorized: false }
  const anyName = { ...VERIFIED, ca }
  const modes: [string, unknown, checksName?: boolean][] = [
    ['sslmode=disable', false],
    ['sslmode=prefer', 'prefer'],
    ['channel_binding=prefer', 'prefer'],
    ['sslmode=require', unverified, false],
    ['ssl=true', unverified, false],
    [`sslmode=require&sslrootcert=${file}`, anyName, false],
    [`sslrootcert=${file}`, anyName, false],
    [`sslmode=verify-ca&sslrootcert=${file}`, anyName, false],
    [`sslmode=verify-full&sslrootcert=${file}`, { ...VERIFIED, ca }, true],
    ['sslmode=verify-full', VERIFIED, true],
    ['sslrootcert=system', VERIFIED, true],
    ['sslmode=require&channel_binding=require', VERIFIED, true],
    [`sslcert=${file}&sslkey=${file}`, { ...unverified, cert: ca, key: ca }, false],
  ]
  for (const [query, expected, checksName] of modes) {
    const { ssl } = readDatabaseUrl(`postgres://db?${query}`)
    if (typeof ssl === 'object') {
      const { checkServerIdentity, ...rest } = ssl
      t.strictSame(rest, expected, query)
      t.equal(checkServerIdentity?.('db', {} as never), undefined)
      t.equal(!checkServerIdentity, checksName, `${query}: the name`)
    } else t.equal(ssl, expected, query)
  }
  t.strictSame(readDatabaseUrl('postgres://10.0.0.1?sslmode=verify-full').ssl, { ...VERIFIED, host: '10.0.0.1' })
  t.equal(readDatabaseUrl('postgres:///x?host=/run&sslmode=require').ssl, false, 'a socket is not encrypted')
})

t.test('What cannot be understood stops the start with its name', async t => {
  const page = '(docs/run/deploy.md, "The address of the database")'
  const proxy = 'have one host. Put HAProxy in front of several hosts (docs/run/deploy.md, ' +
    '"A database that fails over")'
  const refused: [string, string][] = [
    ['?schema=public', `not have the parameter "schema" ${page}`],
    ['?toString=1', `not have the parameter "toString" ${page}`],
    ['?sslmode=allow', `not have sslmode=allow ${page}`],
    ['?channel_binding=yes', `not have channel_binding=yes ${page}`],
    ['?target_session_attrs=leader', `not have target_session_attrs=leader ${page}`],
    ['?connect_timeout=5s', `not have connect_timeout=5s ${page}`],
    ['?client_encoding=latin1', `not have client_encoding=latin1 ${page}`],
    ['?sslmode=require&sslrootcert=system', 'have sslmode=verify-full with sslrootcert=system'],
    ['?sslmode=verify-ca', 'have sslrootcert with sslmode=verify-ca'],
    ['?sslrootcert=/none.pem', 'have the path of a readable file as sslrootcert: ' +
      'ENOENT: no such file or directory, open \'/none.pem\''],
    ['?application_name=100%', 'have each % encoded as %25'],
    ['?port=0', 'have a port from 1 to 65535'],
    [':65536', 'have a port from 1 to 65535'],
    [',other', proxy],
    ['?host=one,two', proxy],
  ]
  for (const [end, reason] of refused) {
    t.throws(() => readDatabaseUrl(`postgres://db${end}`), new StartupError(`DATABASE_URL must ${reason}`), end)
  }
})

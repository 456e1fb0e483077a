import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

import { defaultHeldBytes, loadConfig, variables } from '#lib/config.js'
import { StartupError } from '#lib/errors.js'
import t from '../suite.ts'

/** Loads the configuration of this environment, without a `.env` file unless one is given. */
function load (environment: NodeJS.Dict<string> = {}, dotenv = '/dev/null') {
  return loadConfig(environment, dotenv)
}

/** The message of the StartupError. */
function refusal (environment: NodeJS.Dict<string>, dotenv?: string) {
  try {
    return load(environment, dotenv)
  } catch (error) {
    return error instanceof StartupError ? error.message : error
  }
}

const SECRET = 'x'.repeat(32)

/** The message for each variable. */
const MUST = {
  PORT: 'PORT must be a port number from 0 to 65535',
  WORKERS: 'WORKERS must be a number of processes from 1 to 99, or auto for one on each core',
  LOG_LEVEL: 'LOG_LEVEL must be fatal, error, warn, info, debug, trace or silent',
  TRUST_PROXY: 'TRUST_PROXY must be false, a number of proxies from 1 to 99, or a comma-separated list of their ' +
    'addresses and networks such as 10.0.0.0/8',
  METRICS_TOKEN: 'METRICS_TOKEN must be a secret of at least 16 letters, digits and -._~+/',
  HSTS: 'HSTS must be a value of Strict-Transport-Security such as max-age=31536000; includeSubDomains, or off',
  API_DOCS: 'API_DOCS must be true or false',
  MAX_REQUESTS: 'MAX_REQUESTS must be a number of requests from 1 to 1000000',
  MAX_BODY_BYTES: 'MAX_BODY_BYTES must be a number of bytes from 1024 to 268435456',
  MAX_TEXT_BYTES: 'MAX_TEXT_BYTES must be a number of bytes from 1024 to 268435456',
  MAX_HEADER_BYTES: 'MAX_HEADER_BYTES must be a number of bytes from 1024 to 1048576',
  MAX_JSON_DEPTH: 'MAX_JSON_DEPTH must be a number of levels from 1 to 1000',
  REQUEST_TIMEOUT: 'REQUEST_TIMEOUT must be a number of seconds from 1 to 3600',
  IDLE_TIMEOUT: 'IDLE_TIMEOUT must be a number of seconds from 1 to 3600',
  MAX_HELD_BYTES: 'MAX_HELD_BYTES must be a number of bytes from 1048576 to 68719476736',
  STOP_DELAY: 'STOP_DELAY must be a number of seconds from 0 to 3600',
  DATABASE_URL: 'DATABASE_URL must be a PostgreSQL address such as postgres://user:password@host:5432/name',
  DATABASE_REPLICA_URL: 'DATABASE_REPLICA_URL must be a PostgreSQL address such as ' +
    'postgres://user:password@host1:5432,host2:5432/name',
  REPLICA_WAIT: 'REPLICA_WAIT must be a number of milliseconds from 1 to 10000',
  DATABASE_POOL_SIZE: 'DATABASE_POOL_SIZE must be a number of connections from 1 to 1000',
  DATABASE_PREPARE: 'DATABASE_PREPARE must be true or false',
  DATABASE_TIMEOUT: 'DATABASE_TIMEOUT must be a number of seconds from 1 to 3600',
  CACHE_SIZE_MB: 'CACHE_SIZE_MB must be a number of megabytes from 1 to 65536',
  MIGRATE_ON_START: 'MIGRATE_ON_START must be true or false',
  JWT_SECRET: 'JWT_SECRET must be a secret of at least 32 characters',
  JWT_EXPIRES_IN: 'JWT_EXPIRES_IN must be a lifetime such as 15m, 12h or 7d',
  SIGN_IN_ATTEMPTS: 'SIGN_IN_ATTEMPTS must be a number of failures from 1 to 1000, or 0 for no limit',
  SIGN_IN_ATTEMPTS_PER_NETWORK: 'SIGN_IN_ATTEMPTS_PER_NETWORK must be a number of failures from 1 to 10000, or 0 for ' +
    'no limit',
  REGISTRATIONS_PER_NETWORK: 'REGISTRATIONS_PER_NETWORK must be a number of registrations from 1 to 10000, or 0 for ' +
    'no limit',
  SUBMISSIONS_PER_USER: 'SUBMISSIONS_PER_USER must be a number of blogs from 1 to 10000, or 0 for no limit',
  SIGN_IN_WINDOW: 'SIGN_IN_WINDOW must be a number of seconds from 1 to 86400',
  ADMIN_EMAIL: 'ADMIN_EMAIL must be an email address',
  ADMIN_PASSWORD: 'ADMIN_PASSWORD must be a password of at least 8 characters',
  FRONTEND_URL: 'FRONTEND_URL must be a comma-separated list of origins such as https://app.example.org',
  IDP_ISSUER: 'IDP_ISSUER must be the https address of an OpenID Connect issuer (http only on loopback)',
  IDP_REDIRECT_URI: 'IDP_REDIRECT_URI must be the public http or https address of /auth/google/callback',
  IDP_EMAIL_VERIFIED: 'IDP_EMAIL_VERIFIED must be claim or assume',
  SMTP_URL: 'SMTP_URL must be an SMTP address such as smtp://user:password@host:587, or one of smtps',
  MAIL_FROM: 'MAIL_FROM must be an email address',
  MAIL_TIME_ZONE: 'MAIL_TIME_ZONE must be an IANA time zone such as Europe/Berlin',
  MAIL_RATE: 'MAIL_RATE must be a number of mails from 1 to 6000',
  REMINDER_HOURS: 'REMINDER_HOURS must be a number of hours from 1 to 720, or 0 for no reminders',
  PUBLIC_URL: 'PUBLIC_URL must be the public http or https address of this service, such as https://api.example.org',
  COMMUNITY_NAME: 'COMMUNITY_NAME must be a name of at most 100 characters',
}

const DEFAULTS = {
  NODE_ENV: 'development',
  HOST: '127.0.0.1',
  PORT: 3000,
  WORKERS: 1,
  LOG_LEVEL: 'info',
  HSTS: 'max-age=31536000',
  API_DOCS: true,
  MAX_REQUESTS: 1000,
  MAX_BODY_BYTES: 1048576,
  MAX_TEXT_BYTES: 262144,
  MAX_HEADER_BYTES: 16384,
  MAX_JSON_DEPTH: 32,
  REQUEST_TIMEOUT: 30,
  IDLE_TIMEOUT: 72,
  MAX_HELD_BYTES: 134217728,
  STOP_DELAY: 1,
  TRUST_PROXY: false,
  REPLICA_WAIT: 100,
  DATABASE_POOL_SIZE: 10,
  DATABASE_PREPARE: true,
  DATABASE_TIMEOUT: 5,
  CACHE_SIZE_MB: 32,
  DATA_DIR: '.data',
  MIGRATE_ON_START: false,
  JWT_EXPIRES_IN: '7d',
  SIGN_IN_ATTEMPTS: 20,
  SIGN_IN_ATTEMPTS_PER_NETWORK: 300,
  SIGN_IN_WINDOW: 900,
  REGISTRATIONS_PER_NETWORK: 0,
  SUBMISSIONS_PER_USER: 15,
  IDP_ISSUER: 'https://accounts.google.com',
  IDP_EMAIL_VERIFIED: 'claim',
  MAIL_TIME_ZONE: 'UTC',
  MAIL_RATE: 600,
  REMINDER_HOURS: 24,
  COMMUNITY_NAME: 'Community',
  FRONTEND_URL: [],
}

t.test('Without variables there are the defaults', async t => {
  t.strictSame(load(), DEFAULTS)
  t.strictSame(load({ PATH: '/bin', FOO: 'bar' }), DEFAULTS, 'unknown variables are ignored')
})

t.test('An empty value counts as unset', async t => {
  const empty = Object.fromEntries(Object.keys(variables.properties).map(name => [name, '']))
  t.strictSame(load({ ...empty, DATABASE_URL_FILE: '' }), DEFAULTS)
})

t.test('Every variable is available under its own name', async t => {
  const texts = {
    NODE_ENV: 'production',
    HOST: '0.0.0.0',
    LOG_LEVEL: 'debug',
    DATABASE_URL: 'postgresql://ada:secret@db.example.org:5432/community?sslmode=require',
    DATA_DIR: '/var/lib/community',
    JWT_SECRET: SECRET,
    JWT_EXPIRES_IN: '12h',
    METRICS_TOKEN: 'a-token-of-the-tests',
    ADMIN_EMAIL: 'admin@example.org',
    ADMIN_PASSWORD: 'correct horse',
    IDP_ISSUER: 'https://id.example.org/realms/students',
    IDP_CLIENT_ID: 'community',
    IDP_CLIENT_SECRET: 'a client secret',
    IDP_REDIRECT_URI: 'https://api.example.org/auth/google/callback',
    IDP_EMAIL_VERIFIED: 'assume',
    SMTP_URL: 'smtps://user:password@smtp.example.org',
    MAIL_FROM: 'community@example.org',
    MAIL_TIME_ZONE: 'Europe/Berlin',
    PUBLIC_URL: 'https://api.example.org/community/',
    COMMUNITY_NAME: 'Chess Club',
  } as const
  t.strictSame(load({
    ...texts,
    PORT: '8080',
    MAIL_RATE: '60',
    REMINDER_HOURS: '48',
    WORKERS: '4',
    HSTS: 'off',
    API_DOCS: 'false',
    MAX_REQUESTS: '77',
    MAX_BODY_BYTES: '2048',
    MAX_TEXT_BYTES: '1500',
    MAX_HEADER_BYTES: '8192',
    MAX_JSON_DEPTH: '9',
    REQUEST_TIMEOUT: '10',
    IDLE_TIMEOUT: '60',
    MAX_HELD_BYTES: '2000000',
    STOP_DELAY: '3',
    TRUST_PROXY: '10.0.0.1',
    REPLICA_WAIT: '50',
    DATABASE_POOL_SIZE: '20',
    DATABASE_PREPARE: 'false',
    DATABASE_TIMEOUT: '30',
    CACHE_SIZE_MB: '8',
    MIGRATE_ON_START: 'true',
    SIGN_IN_ATTEMPTS: '5',
    SIGN_IN_ATTEMPTS_PER_NETWORK: '50',
    SIGN_IN_WINDOW: '60',
    REGISTRATIONS_PER_NETWORK: '100',
    SUBMISSIONS_PER_USER: '10',
    FRONTEND_URL: 'https://app.example.org',
  }), {
    ...texts,
    PORT: 8080,
    WORKERS: 4,
    HSTS: 'off',
    API_DOCS: false,
    MAX_REQUESTS: 77,
    MAX_BODY_BYTES: 2048,
    MAX_TEXT_BYTES: 1500,
    MAX_HEADER_BYTES: 8192,
    MAX_JSON_DEPTH: 9,
    REQUEST_TIMEOUT: 10,
    IDLE_TIMEOUT: 60,
    MAX_HELD_BYTES: 2000000,
    STOP_DELAY: 3,
    TRUST_PROXY: ['10.0.0.1'],
    REPLICA_WAIT: 50,
    DATABASE_POOL_SIZE: 20,
    DATABASE_PREPARE: false,
    DATABASE_TIMEOUT: 30,
    CACHE_SIZE_MB: 8,
    MIGRATE_ON_START: true,
    SIGN_IN_ATTEMPTS: 5,
    SIGN_IN_ATTEMPTS_PER_NETWORK: 50,
    SIGN_IN_WINDOW: 60,
    REGISTRATIONS_PER_NETWORK: 100,
    SUBMISSIONS_PER_USER: 10,
    MAIL_RATE: 60,
    REMINDER_HOURS: 48,
    FRONTEND_URL: ['https://app.example.org'],
  })
})

t.test('A valid value is accepted', async t => {
  const good: Record<string, string[]> = {
    PORT: ['0', '65535'],
    METRICS_TOKEN: ['a-token-of-the-tests', 'QUJDREVGR0hJSktMTQ=='],
    MAX_REQUESTS: ['1', '1000000'],
    MAX_BODY_BYTES: ['1024', '268435456'],
    MAX_TEXT_BYTES: ['1024', '268435456'],
    MAX_HEADER_BYTES: ['1024', '1048576'],
    MAX_JSON_DEPTH: ['1', '1000'],
    REQUEST_TIMEOUT: ['1', '3600'],
    IDLE_TIMEOUT: ['1', '3600'],
    MAX_HELD_BYTES: ['1048576', '68719476736'],
    STOP_DELAY: ['0', '3600'],
    LOG_LEVEL: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    TRUST_PROXY: ['false', '1', '99', '192.0.2.1', '10.0.0.0/8', '0.0.0.0/1', '::1', '2001:DB8::/32',
      '::ffff:10.0.0.1/128', '127.0.0.1,::1,172.16.0.0/12'],
    DATABASE_URL: ['postgres://localhost', 'postgresql://a:b@[::1]:5433/c'],
    DATABASE_REPLICA_URL: ['postgres://localhost', 'postgresql://a:b@one:5433,[::1]/c'],
    REPLICA_WAIT: ['1', '10000'],
    DATABASE_POOL_SIZE: ['1', '1000'],
    DATABASE_TIMEOUT: ['1', '3600'],
    CACHE_SIZE_MB: ['1', '65536'],
    JWT_SECRET: [SECRET],
    SIGN_IN_ATTEMPTS: ['0', '1', '1000'],
    SIGN_IN_ATTEMPTS_PER_NETWORK: ['0', '1', '10000'],
    SIGN_IN_WINDOW: ['1', '86400'],
    REGISTRATIONS_PER_NETWORK: ['0', '10000'],
    SUBMISSIONS_PER_USER: ['0', '10000'],
    JWT_EXPIRES_IN: ['1s', '15m', '12h', '7d', '99999w'],
    IDP_ISSUER: ['https://id.example.org', 'http://localhost:9000', 'http://127.0.0.1', 'http://127.1.2.3:80/realm',
      'http://[::1]:9000'],
    IDP_REDIRECT_URI: ['http://localhost:3000/auth/google/callback', 'https://example.org/api/auth/google/callback'],
    IDP_EMAIL_VERIFIED: ['claim', 'assume'],
    MAIL_TIME_ZONE: ['UTC', 'Europe/Berlin', 'America/Argentina/Ushuaia'],
    MAIL_RATE: ['1', '6000'],
    REMINDER_HOURS: ['0', '720'],
    PUBLIC_URL: ['http://localhost:3000', 'https://api.example.org/community/'],
    COMMUNITY_NAME: ['C', 'Schachklub "Läufer" & Co.', 'x'.repeat(100)],
  }
  for (const [name, values] of Object.entries(good)) {
    for (const value of values) {
      t.equal(String(load({ [name]: value })[name as keyof typeof DEFAULTS]), value, `${name}=${value}`)
    }
  }
  for (const password of ['12345678', 'x'.repeat(200)]) {
    t.equal(load({ ADMIN_EMAIL: 'a@b.org', ADMIN_PASSWORD: password }).ADMIN_PASSWORD, password)
  }
})

t.test('An invalid value is a StartupError of one line, with the variable and the rule', async t => {
  const bad: Record<keyof typeof MUST, string[]> = {
    PORT: ['-1', '65536', '80.5', 'http', '3000x'],
    WORKERS: ['0', '-1', '1.5', '100', 'Auto', 'all'],
    HSTS: ['on', '31536000', 'max-age=', 'max-age=1; includeSubdomains', 'max-age=1\r\nx: y'],
    API_DOCS: ['no', '0'],
    MAX_REQUESTS: ['0', '1000001'],
    MAX_BODY_BYTES: ['1023', '268435457', '1MB'],
    MAX_TEXT_BYTES: ['1023', '268435457', '256KB'],
    MAX_HEADER_BYTES: ['1023', '1048577'],
    MAX_JSON_DEPTH: ['0', '1001'],
    REQUEST_TIMEOUT: ['0', '3601'],
    IDLE_TIMEOUT: ['0', '3601'],
    MAX_HELD_BYTES: ['1048575', '68719476737', '128MB'],
    STOP_DELAY: ['-1', '3601', 'soon'],
    LOG_LEVEL: ['INFO', 'verbose'],
    TRUST_PROXY: ['true', 'FALSE', 'all', '*', '0', '-1', '1.5', '100', '01', '10.0.0', '10.0.0.256', '10.0.0.0/0',
      '10.0.0.0/33', '::/0', '::/129', '10.0.0.0/255.0.0.0', '10.0.0.1/', '/8', 'proxy.example.org', '10.0.0.1,', ',',
      '10.0.0.1 ::1', '10.0.0.1,1', '10.0.0.1:80', '[::1]', 'fe80::1%eth0'],
    DATABASE_URL: ['mysql://localhost/x', 'localhost:5432', '/var/run/postgresql', 'postgres://ada:secret@db:99999/x',
      'postgres://ada:100%@db/x'],
    DATABASE_REPLICA_URL: ['mysql://localhost/x', 'one,two', 'postgres://one:99999,two/x'],
    REPLICA_WAIT: ['0', '10001', '100ms'],
    DATABASE_POOL_SIZE: ['0', '1001', '1.5', 'ten'],
    DATABASE_PREPARE: ['yes', 'TRUE'],
    DATABASE_TIMEOUT: ['0', '3601', '5s'],
    CACHE_SIZE_MB: ['0', '65537', '64MB'],
    MIGRATE_ON_START: ['on', 'no'],
    JWT_SECRET: ['x'.repeat(31)],
    JWT_EXPIRES_IN: ['0d', '7', 'd', '7 days', '-1h', '100000s', '7y'],
    SIGN_IN_ATTEMPTS: ['-1', '1001', '2.5', 'off'],
    SIGN_IN_ATTEMPTS_PER_NETWORK: ['-1', '10001', 'all'],
    REGISTRATIONS_PER_NETWORK: ['-1', '10001'],
    SUBMISSIONS_PER_USER: ['-1', '10001'],
    METRICS_TOKEN: ['short', 'a token of the tests', 'a-token-of-the-testß'],
    SIGN_IN_WINDOW: ['0', '86401', '15m'],
    ADMIN_EMAIL: ['admin', 'admin@localhost', 'a@b@c.org'],
    ADMIN_PASSWORD: ['1234567'],
    FRONTEND_URL: ['app.example.org', '*', 'null', 'ftp://app.example.org', 'https://app.example.org/app',
      'https://app.example.org//', 'https://app.example.org?', 'https://app.example.org/?a=b', 'https://app.example.org/#',
      'https://ada@app.example.org', 'https://:secret@app.example.org', 'https://app.example.org,',
      'https://app.example.org,https://b.example.org/x'],
    IDP_ISSUER: ['id.example.org', 'http://id.example.org', 'http://localhost.example.org', 'http://127.0.0.1.example.org',
      'ftp://localhost'],
    IDP_REDIRECT_URI: ['/auth/google/callback', 'ftp://example.org/auth/google/callback'],
    IDP_EMAIL_VERIFIED: ['true', 'Assume', 'no'],
    SMTP_URL: ['localhost', 'http://localhost', 'smtp:localhost', 'smtp://', 'smtp://:secret@host', 'smtp://%@host',
      'smtp://host/path', 'smtp://host?tls', 'smtp://host#tls', 'smtp://host:99999'],
    MAIL_FROM: ['Community <community@example.org>', 'community'],
    MAIL_TIME_ZONE: ['Berlin', 'Europe/Nowhere'],
    MAIL_RATE: ['0', '6001', 'all'],
    REMINDER_HOURS: ['-1', '721', '1.5'],
    PUBLIC_URL: ['api.example.org', 'ftp://example.org', 'https://example.org/?a', 'https://example.org/#a'],
    COMMUNITY_NAME: ['x'.repeat(101), 'Chess\nClub'],
  }
  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) {
      const environment = { ADMIN_EMAIL: 'admin@example.org', ADMIN_PASSWORD: 'correct horse', [name]: value }
      t.equal(refusal(environment), MUST[name as keyof typeof MUST], `${name}=${value}`)
    }
  }
})

t.test('SMTP_URL needs MAIL_FROM', async t => {
  const MAIL_FROM = 'community@example.org'
  t.equal(refusal({ SMTP_URL: 'smtp://localhost' }), 'MAIL_FROM must be set with SMTP_URL')
  for (const SMTP_URL of ['smtp://localhost', 'smtps://host:465/', 'smtp://a%40b:c%2Fd@[::1]:25', 'smtp://ada@host']) {
    t.equal(load({ SMTP_URL, MAIL_FROM }).SMTP_URL, SMTP_URL)
  }
})

t.test('Several invalid values are reported in one line', async t => {
  t.equal(refusal({ PORT: 'x', JWT_SECRET: 'short', FRONTEND_URL: '*' }),
    `${MUST.PORT}; ${MUST.JWT_SECRET}; ${MUST.FRONTEND_URL}`)
})

t.test('FRONTEND_URL is a list of origins', async t => {
  const lists: [string, string[]][] = [
    ['https://app.example.org', ['https://app.example.org']],
    ['https://app.example.org/', ['https://app.example.org']],
    ['http://localhost:5173', ['http://localhost:5173']],
    ['https://b.example.org/,http://a.example.org:8080', ['https://b.example.org', 'http://a.example.org:8080']],
    ['https://b.example.org, https://a.example.org', ['https://b.example.org', 'https://a.example.org']],
    ['https://APP.example.org:443', ['https://app.example.org']],
  ]
  for (const [value, origins] of lists) t.strictSame(load({ FRONTEND_URL: value }).FRONTEND_URL, origins, value)
})

t.test('WORKERS is a number, or one for each core', async t => {
  t.equal(load({ WORKERS: '99' }).WORKERS, 99)
  t.equal(load({ WORKERS: 'auto' }).WORKERS, availableParallelism())
})

t.test('TRUST_PROXY is false, a number, or a list', async t => {
  t.equal(load({ TRUST_PROXY: 'false' }).TRUST_PROXY, false)
  t.equal(load({ TRUST_PROXY: '2' }).TRUST_PROXY, 2)
  t.strictSame(load({ TRUST_PROXY: '10.0.0.0/8, ::1' }).TRUST_PROXY, ['10.0.0.0/8', '::1'])
})

t.test('ADMIN_EMAIL and ADMIN_PASSWORD must be set together', async t => {
  t.equal(refusal({ ADMIN_EMAIL: 'admin@example.org' }), 'ADMIN_EMAIL and ADMIN_PASSWORD must be set together')
  t.equal(refusal({ ADMIN_PASSWORD: 'correct horse' }), 'ADMIN_EMAIL and ADMIN_PASSWORD must be set together')
})

t.test('Production requires JWT_SECRET, and DATABASE_URL or DATA_DIR', async t => {
  const production = { NODE_ENV: 'production', JWT_SECRET: SECRET }
  t.strictSame(load({ ...production, DATABASE_URL: 'postgres://db/x' }),
    { ...DEFAULTS, ...production, DATABASE_URL: 'postgres://db/x' })
  t.strictSame(load({ ...production, DATA_DIR: '.data' }), { ...DEFAULTS, ...production, DATA_DIR: '.data' })
  t.equal(refusal({ NODE_ENV: 'production', DATABASE_URL: 'postgres://db/x' }),
    'JWT_SECRET must be set in production: at least 32 characters')
  t.equal(refusal(production),
    'DATABASE_URL must be set in production (or DATA_DIR, to keep an embedded database there)')
})

t.test('.env is read when present, and the environment wins', async t => {
  const dotenv = join(t.testdir({ '.env': 'PORT=4000\nHOST="::1" # both\n\n# LOG_LEVEL=trace\nDATA_DIR=\n' }), '.env')
  t.strictSame(load({}, dotenv), { ...DEFAULTS, PORT: 4000, HOST: '::1' })
  t.strictSame(load({ PORT: '5000' }, dotenv), { ...DEFAULTS, PORT: 5000, HOST: '::1' })
  t.strictSame(load({ PORT: '' }, dotenv), { ...DEFAULTS, PORT: 4000, HOST: '::1' }, 'unless its value is empty')
  t.strictSame(load({}, `${dotenv}.missing`), DEFAULTS)
})

t.test('The defaults are .env in the current folder and the environment of the process', async t => {
  t.chdir(t.testdir({ '.env': 'HOST=::1\nPORT=1' }))
  t.intercept(process, 'env', { value: { PORT: '4000' } })
  t.strictSame(loadConfig(), { ...DEFAULTS, PORT: 4000, HOST: '::1' })
})

t.test('A .env that cannot be read is a StartupError', async t => {
  const dir = t.testdir()
  t.equal(refusal({}, dir), `Cannot read ${dir}: EISDIR: illegal operation on a directory, read`)
})

t.test('NAME_FILE is the path of a file with the value', async t => {
  const values = {
    DATABASE_URL: 'postgres://db/x',
    DATABASE_REPLICA_URL: 'postgres://one,two/x',
    JWT_SECRET: SECRET,
    ADMIN_PASSWORD: 'correct horse',
    IDP_CLIENT_SECRET: 'a secret',
    METRICS_TOKEN: 'a-token-of-the-tests',
    SMTP_URL: 'smtp://user:password@localhost',
  }
  const required: Record<string, object> = {
    ADMIN_PASSWORD: { ADMIN_EMAIL: 'admin@example.org' },
    SMTP_URL: { MAIL_FROM: 'community@example.org' },
  }
  for (const [name, value] of Object.entries(values)) {
    t.test(name, async t => {
      const dir = t.testdir({ plain: value, newline: `${value}\n`, windows: `${value}\r\n` })
      const others = required[name]
      const mounted = (file: string) => ({ ...others, [`${name}_FILE`]: join(dir, file) })

      const expected = { ...DEFAULTS, ...others, [name]: value }
      t.strictSame(load(mounted('plain')), expected)
      t.strictSame(load(mounted('newline')), expected, 'without its trailing newline')
      t.strictSame(load(mounted('windows')), expected, 'without a CRLF at its end')
      t.strictSame(load({ ...mounted('plain'), [name]: '' }), expected, 'an empty variable beside it counts as unset')
      t.equal(refusal({ ...mounted('plain'), [name]: value }), `Only one of ${name} and ${name}_FILE may be set`)
      t.equal(refusal(mounted('missing')), `${name}_FILE must be the path of a readable file: ` +
        `ENOENT: no such file or directory, open '${join(dir, 'missing')}'`)
    })
  }
  const dir = t.testdir({ secret: SECRET, short: 'short', '.env': `JWT_SECRET=${SECRET}` })
  t.equal(refusal({ JWT_SECRET_FILE: join(dir, 'short') }), MUST.JWT_SECRET, 'the content is validated')
  t.equal(refusal({ JWT_SECRET_FILE: join(dir, 'secret') }, join(dir, '.env')),
    'Only one of JWT_SECRET and JWT_SECRET_FILE may be set', '.env counts')
})

t.test('Only secrets may be read from files', async t => {
  t.strictSame(load({ PORT_FILE: '/dev/null', HOST_FILE: '/missing' }), DEFAULTS)
})

t.test('.env.example lists every variable', async t => {
  const example = readFileSync('.env.example', 'utf8')
  const listed = [...example.matchAll(/^#?([A-Z][A-Z0-9_]*)=/gm)].map(match => match[1])
  t.strictSame(listed.sort(), Object.keys(variables.properties).sort())
})

t.test('The default of MAX_HELD_BYTES is a quarter of the memory of the control group, or of 512 MB', async t => {
  t.equal(defaultHeldBytes(100_000_001), 25_000_000)
  // Node.js has these numbers for a group without a limit.
  for (const limit of [0, 2 ** 63]) t.equal(defaultHeldBytes(limit), 2 ** 27)
})

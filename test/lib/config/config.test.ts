import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { type Config, defaultHeldBytes, loadConfig, variables } from '#lib/config/config.js'
import { StartupError } from '#lib/config/startup-error.js'
import t from '../../suite.ts'

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

type Name = keyof typeof variables.properties

/** The expected error messages. test/docs.test.ts compares the descriptions with the documentation. */
const must = (name: Name) => `${name} must be ${variables.properties[name].description}`

/** The defaults in the schema, which test/docs.test.ts also compares, and converted or computed defaults. */
const DEFAULTS = {
  ...Object.fromEntries(Object.entries(variables.properties).flatMap(([name, property]) =>
    'default' in property ? [[name, property.default]] : [])),
  TRUST_PROXY: false,
  MAX_HELD_BYTES: 134217728,
  FRONTEND_URL: [],
} as unknown as Config

t.test('Without variables there are the defaults', async t => {
  t.strictSame(load(), DEFAULTS)
  t.strictSame(load({ PATH: '/bin', FOO: 'bar' }), DEFAULTS, 'unknown variables are ignored')
})

t.test('The largest picture arrives in time at 0.7 megabits per second', async t => {
  const { MAX_PICTURE_BYTES, REQUEST_TIMEOUT } = load()
  t.ok(MAX_PICTURE_BYTES * 8 / REQUEST_TIMEOUT <= 700_000)
})

t.test('An empty value counts as unset', async t => {
  const empty = Object.fromEntries(Object.keys(variables.properties).map(name => [name, '']))
  t.strictSame(load({ ...empty, DATABASE_URL_FILE: '' }), DEFAULTS)
})

t.test('A valid value is accepted', async t => {
  const good: { [name in Name]?: string[] } = {
    HOST: ['0.0.0.0'],
    METRICS_TOKEN: ['a-token-of-the-tests', 'QUJDREVGR0hJSktMTQ=='],
    HSTS: ['off', 'max-age=0', 'max-age=31536000; includeSubDomains; preload'],
    API_DOCS: ['true', 'false'],
    LOG_LEVEL: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    TRUST_PROXY: ['false', '1', '99', '192.0.2.1', '10.0.0.0/8', '0.0.0.0/1', '::1', '2001:DB8::/32',
      '::ffff:10.0.0.1/128', '127.0.0.1,::1,172.16.0.0/12'],
    DATABASE_URL: ['postgres://localhost', 'postgresql://a:b@[::1]:5433/c'],
    DATABASE_PREPARE: ['true', 'false'],
    DATA_DIR: ['/var/lib/community'],
    MIGRATE_ON_START: ['true', 'false'],
    JWT_SECRET: [SECRET],
    JWT_EXPIRES_IN: ['1s', '15m', '12h', '7d', '99999w'],
    IDP_ISSUER: ['https://id.example.org', 'http://localhost:9000', 'http://127.0.0.1', 'http://127.1.2.3:80/realm',
      'http://[::1]:9000'],
    IDP_REDIRECT_URI: ['http://localhost:3000/auth/google/callback', 'https://example.org/api/auth/google/callback'],
    IDP_CLIENT_ID: ['community'],
    IDP_EMAIL_VERIFIED: ['claim', 'assume'],
    MAIL_FROM: ['community@example.org', 'Chess & Go <community@example.org>', '"Go, Chess" <community@example.org>'],
    MAIL_TIME_ZONE: ['UTC', 'Europe/Berlin', 'America/Argentina/Ushuaia'],
    PUBLIC_URL: ['http://localhost:3000', 'https://api.example.org/community'],
    COMMUNITY_NAME: ['C', 'Schachklub "Läufer" & Co.', 'x'.repeat(100)],
  }
  for (const [name, values] of Object.entries(good) as [Name, string[]][]) {
    for (const value of values) {
      const loaded = load({ [name]: value })[name]
      const { type } = variables.properties[name]
      t.equal(name === 'TRUST_PROXY' ? String(loaded) : loaded, type === 'string' ? value : JSON.parse(value),
        `${name}=${value}`)
    }
  }
  for (const password of ['12345678', 'x'.repeat(200)]) {
    t.equal(load({ ADMIN_EMAIL: 'a@b.org', ADMIN_PASSWORD: password }).ADMIN_PASSWORD, password)
  }
})

t.test('An invalid value is a StartupError of one line, with the variable and the rule', async t => {
  const bad: { [name in Name]?: string[] } = {
    HSTS: ['on', '31536000', 'max-age=', 'max-age=1; includeSubdomains', 'max-age=1\r\nx: y'],
    API_DOCS: ['no', '0'],
    LOG_LEVEL: ['INFO', 'verbose'],
    TRUST_PROXY: ['true', 'FALSE', 'all', '*', '0', '-1', '1.5', '100', '01', '10.0.0', '10.0.0.256', '10.0.0.0/0',
      '10.0.0.0/33', '::/0', '::/129', '10.0.0.0/255.0.0.0', '10.0.0.1/', '/8', 'proxy.example.org', '10.0.0.1,', ',',
      '10.0.0.1 ::1', '10.0.0.1,1', '10.0.0.1:80', '[::1]', 'fe80::1%eth0'],
    DATABASE_URL: ['mysql://localhost/x', 'localhost:5432', '/var/run/postgresql', 'postgres://db:x/y', 'postgres://[::1'],
    DATABASE_PREPARE: ['yes', 'TRUE'],
    MIGRATE_ON_START: ['on', 'no'],
    JWT_SECRET: ['x'.repeat(31)],
    JWT_EXPIRES_IN: ['0d', '7', 'd', '7 days', '-1h', '100000s', '7y'],
    METRICS_TOKEN: ['short', 'a token of the tests', 'a-token-of-the-testß'],
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
      'smtp://host/path', 'smtp://host?tls', 'smtp://host?tls=off', 'smtp://host#tls', 'smtp://host:99999'],
    MAIL_FROM: ['community', 'Community <community>', 'a@example.org, b@example.org', 'A\n <a@example.org>'],
    MAIL_TIME_ZONE: ['Berlin', 'Europe/Nowhere'],
    PUBLIC_URL: ['api.example.org', 'ftp://example.org', 'https://example.org/?a', 'https://example.org/#a'],
    COMMUNITY_NAME: ['x'.repeat(101), 'Chess\nClub'],
  }
  for (const [name, values] of Object.entries(bad) as [Name, string[]][]) {
    for (const value of values) {
      const environment = { ADMIN_EMAIL: 'admin@example.org', ADMIN_PASSWORD: 'correct horse', [name]: value }
      t.equal(refusal(environment), must(name), `${name}=${value}`)
    }
  }
})

t.test('A whole number is within its range', async t => {
  for (const [name, { type, ...range }] of Object.entries(variables.properties) as [Name, { type: string }][]) {
    if (type !== 'integer') continue
    const { minimum, maximum } = range as unknown as { minimum: number, maximum: number }
    for (const value of [minimum, maximum]) {
      // MAX_BODY_BYTES limits MAX_TEXT_BYTES.
      const loaded = load({ MAX_BODY_BYTES: '268435456', [name]: String(value) })
      t.equal(loaded[name], value, `${name}=${value}`)
    }
    for (const value of [minimum - 1, maximum + 1, `${minimum}.5`, `${maximum}x`, 'ten']) {
      t.equal(refusal({ [name]: String(value) }), must(name), `${name}=${value}`)
    }
  }
})

t.test('SMTP_URL needs MAIL_FROM', async t => {
  const MAIL_FROM = 'community@example.org'
  t.equal(refusal({ SMTP_URL: 'smtp://localhost' }), 'MAIL_FROM must be set with SMTP_URL')
  for (const SMTP_URL of [
    'smtp://localhost', 'smtps://host:465/', 'smtp://a%40b:c%2Fd@[::1]:25', 'smtp://ada@host', 'smtp://host?tls=unverified',
  ]) {
    t.equal(load({ SMTP_URL, MAIL_FROM }).SMTP_URL, SMTP_URL)
  }
})

t.test('Several invalid values are reported in one line', async t => {
  t.equal(refusal({ PORT: 'x', JWT_SECRET: 'short', FRONTEND_URL: '*' }),
    `${must('PORT')}; ${must('JWT_SECRET')}; ${must('FRONTEND_URL')}`)
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

t.test('The slash at the end of a URL that paths are appended to is removed', async t => {
  for (const name of ['PUBLIC_URL', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const) {
    for (const url of ['https://example.org', 'https://example.org/a/b']) t.equal(load({ [name]: `${url}/` })[name], url)
  }
  for (const name of ['IDP_ISSUER', 'IDP_REDIRECT_URI'] as const) {
    t.equal(load({ [name]: 'https://example.org/' })[name], 'https://example.org/', `${name} is compared as it is`)
  }
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

t.test('Files and variables are text in UTF-8, less a byte order mark', async t => {
  const latin1 = Buffer.from(`JWT_SECRET=${'é'.repeat(32)}`, 'latin1')
  const dir = t.testdir({ marked: '\ufeffPORT=4000', latin1, utf16: Buffer.from('\ufeffPORT=4000', 'utf16le') })
  t.equal(load({}, join(dir, 'marked')).PORT, 4000)
  for (const file of ['latin1', 'utf16']) {
    t.equal(refusal({}, join(dir, file)), `Cannot read ${join(dir, file)}: it is not UTF-8`)
  }
  const variable = { JWT_SECRET_FILE: join(dir, 'latin1') }
  t.equal(refusal(variable), 'JWT_SECRET_FILE must be the path of a readable file: it is not UTF-8')
  t.equal(load({ JWT_SECRET_FILE: join(t.testdir({ secret: `\ufeff${SECRET}` }), 'secret') }).JWT_SECRET, SECRET)
  t.equal(refusal({ JWT_SECRET: latin1.toString() }), 'JWT_SECRET must be text in UTF-8')
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
  t.equal(load({ PORT_FILE: '/nowhere' }).PORT, 3000, 'of a secret only')
  const values = {
    DATABASE_URL: 'postgres://db/x',
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
      t.strictSame(load({ ...mounted('plain'), [name]: '' }), expected, 'an empty variable counts as unset')
      t.equal(refusal({ ...mounted('plain'), [name]: value }), `Only one of ${name} and ${name}_FILE may be set`)
      t.equal(refusal(mounted('missing')), `${name}_FILE must be the path of a readable file: ` +
        `ENOENT: no such file or directory, open '${join(dir, 'missing')}'`)
    })
  }
  const dir = t.testdir({ secret: SECRET, short: 'short', '.env': `JWT_SECRET=${SECRET}` })
  t.equal(refusal({ JWT_SECRET_FILE: join(dir, 'short') }), must('JWT_SECRET'), 'the content is validated')
  t.equal(refusal({ JWT_SECRET_FILE: join(dir, 'secret') }, join(dir, '.env')),
    'Only one of JWT_SECRET and JWT_SECRET_FILE may be set', '.env counts')
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

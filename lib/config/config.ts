import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { isIP } from 'node:net'
import { totalmem } from 'node:os'
import { parseEnv } from 'node:util'

import { type Static, type StringOptions, Type } from '@sinclair/typebox'
import { Ajv } from 'ajv'

import { isDatabaseUrl, readDatabaseUrl } from './database-url.ts'
import { decodeUtf8, isEmail, isSecureUrl, parseMailbox, wasNotUtf8 } from '../values/formats.ts'
import { JWT_SECRET_LENGTH } from './secret-file.ts'
import { StartupError } from './startup-error.ts'

export const VERSION: string = createRequire(import.meta.url)('#package.json').version

interface Range {
  default?: number
  minimum: number
  maximum: number
}

/** A whole number. `what` is for example `a number of seconds`. */
function integer (what: string, range: Range) {
  return Type.Integer({ ...range, description: `${what} from ${range.minimum} to ${range.maximum}` })
}

/** A whole number, or 0 to turn a feature off. */
function limit (what: string, range: Omit<Range, 'minimum'>, off = 'limit') {
  return Type.Integer({ ...range, minimum: 0, description: `${what} from 1 to ${range.maximum}, or 0 for no ${off}` })
}

/** One of these words. */
function oneOf<const T extends string> (words: T[], fallback: T) {
  const description = `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
  return Type.Unsafe<T>({ type: 'string', enum: words, default: fallback, description })
}

/** A text that may be unset. */
function optional (description: string, options: StringOptions = {}) {
  return Type.Optional(Type.String({ ...options, description }))
}

/** All variables of the service. `description` completes the sentence "NAME must be …". */
export const variables = Type.Object({
  NODE_ENV: Type.String({ default: 'development', description: 'production, development or any other name' }),
  HOST: Type.String({ default: '127.0.0.1', description: 'the address to listen on' }),
  PORT: integer('a port number', { default: 3000, minimum: 0, maximum: 65_535 }),
  LOG_LEVEL: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], 'info'),
  TRUST_PROXY: Type.String({
    default: 'false',
    format: 'proxies',
    description: 'false, a number of proxies from 1 to 99, or a comma-separated list of their addresses and networks ' +
      'such as 10.0.0.0/8',
  }),
  METRICS_TOKEN: optional('a secret of at least 16 letters, digits and -._~+/', { pattern: '^[\\w.~+/-]{16,}=*$' }),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional('the http or https URL of an OpenTelemetry collector', { format: 'web' }),
  HSTS: Type.String({
    default: 'max-age=31536000',
    pattern: '^(off|max-age=\\d{1,10}(; ?includeSubDomains)?(; ?preload)?)$',
    description: 'a value of Strict-Transport-Security such as max-age=31536000; includeSubDomains, or off',
  }),
  API_DOCS: Type.Boolean({ default: true, description: 'true or false' }),

  MAX_REQUESTS: integer('a number of requests', { default: 1000, minimum: 1, maximum: 1_000_000 }),
  LIVE_CLIENTS: integer('a number of clients', { default: 2000, minimum: 0, maximum: 1_000_000 }),
  // A body becomes a string. JavaScript limits strings to 512 MB, and a longer one would crash the process.
  MAX_BODY_BYTES: integer('a number of bytes', { default: 1_048_576, minimum: 1024, maximum: 268_435_456 }),
  MAX_TEXT_BYTES: integer('a number of bytes', { default: 262_144, minimum: 1024, maximum: 268_435_456 }),
  MAX_PICTURE_BYTES: integer('a number of bytes', { default: 10_000_000, minimum: 1024, maximum: 100_000_000 }),
  // Long enough for a large picture from a phone with a slow connection.
  REQUEST_TIMEOUT: integer('a number of seconds', { default: 120, minimum: 1, maximum: 3600 }),
  HEADERS_TIMEOUT: integer('a number of seconds', { default: 15, minimum: 1, maximum: 3600 }),
  // Longer than the idle timeouts of proxies: 60 to 120 seconds, and ten minutes for Google's load balancers.
  IDLE_TIMEOUT: integer('a number of seconds', { default: 620, minimum: 1, maximum: 3600 }),
  MAX_HELD_BYTES: Type.Optional(integer('a number of bytes', { minimum: 1_048_576, maximum: 68_719_476_736 })),
  STOP_DELAY: integer('a number of seconds', { default: 1, minimum: 0, maximum: 3600 }),

  DATABASE_URL: optional('a PostgreSQL URL such as postgres://user:password@host:5432/name', { format: 'postgres' }),
  DATABASE_POOL_SIZE: integer('a number of connections', { default: 10, minimum: 1, maximum: 1000 }),
  DATABASE_PREPARE: Type.Boolean({ default: true, description: 'true or false' }),
  DATABASE_TIMEOUT: integer('a number of seconds', { default: 5, minimum: 1, maximum: 3600 }),
  PICTURES_PER_USER: integer('a number of pictures', { default: 100, minimum: 0, maximum: 100_000 }),
  PICTURE_MB_PER_USER: integer('a number of megabytes', { default: 100, minimum: 0, maximum: 100_000 }),
  DRAFT_MB_PER_USER: integer('a number of megabytes', { default: 50, minimum: 1, maximum: 100_000 }),
  CACHE_SIZE_MB: integer('a number of megabytes', { default: 32, minimum: 1, maximum: 65_536 }),
  DATA_DIR: Type.String({ default: '.data', description: 'the path of a folder' }),
  MIGRATE_ON_START: Type.Boolean({ default: false, description: 'true or false' }),

  JWT_SECRET: optional(`a secret of at least ${JWT_SECRET_LENGTH} characters`, { minLength: JWT_SECRET_LENGTH }),
  JWT_EXPIRES_IN: Type.String({
    default: '7d', pattern: '^[1-9][0-9]{0,4}(s|m|h|d|w)$', description: 'a lifetime such as 15m, 12h or 7d',
  }),
  SIGN_IN_ATTEMPTS: limit('a number of failures', { default: 20, maximum: 1000 }),
  SIGN_IN_ATTEMPTS_PER_NETWORK: limit('a number of failures', { default: 1000, maximum: 1_000_000 }),
  LIMIT_WINDOW: integer('a number of seconds', { default: 900, minimum: 1, maximum: 86_400 }),
  REGISTRATIONS_PER_NETWORK: limit('a number of registrations', { default: 0, maximum: 10_000 }),
  ADMIN_EMAIL: optional('an email address', { format: 'email' }),
  ADMIN_PASSWORD: optional('a password of at least 8 characters', { minLength: 8 }),

  FRONTEND_URL: optional('a comma-separated list of origins such as https://app.example.org', { format: 'origins' }),
  IDP_ISSUER: Type.String({
    default: 'https://accounts.google.com',
    format: 'issuer',
    description: 'the https URL of an OpenID Connect issuer (http only on loopback)',
  }),
  IDP_CLIENT_ID: optional('the client id given by the identity provider'),
  IDP_CLIENT_SECRET: optional('the client secret given by the identity provider'),
  IDP_REDIRECT_URI: optional('the public http or https URL of /auth/google/callback', { format: 'web' }),
  IDP_EMAIL_VERIFIED: oneOf(['claim', 'assume'], 'claim'),

  SMTP_URL: optional('an SMTP URL such as smtp://user:password@host:587 or smtps://host; ?tls=unverified at its end ' +
    'accepts any certificate', { format: 'smtp' }),
  MAIL_FROM: optional('an email address such as community@example.org or Community <community@example.org>', {
    format: 'mailbox',
  }),
  MAIL_TIME_ZONE: Type.String({
    default: 'UTC', format: 'time-zone', description: 'an IANA time zone such as Europe/Berlin',
  }),
  MAIL_RATE: integer('a number of emails', { default: 600, minimum: 1, maximum: 6000 }),
  REMINDER_HOURS: limit('a number of hours', { default: 24, maximum: 720 }, 'reminders'),
  PUBLIC_URL: optional('the public http or https URL of this service, such as https://api.example.org', {
    format: 'base',
  }),
  COMMUNITY_NAME: Type.String({
    default: 'Community', pattern: '^[^\\p{Cc}]{1,100}$', description: 'a name of at most 100 characters',
  }),
})

/** The configuration from `loadConfig`: one field per variable, with the same name. */
export type Config = Omit<Static<typeof variables>, 'FRONTEND_URL' | 'MAX_HELD_BYTES' | 'TRUST_PROXY'> & {
  /** Maximum number of bytes that the bodies of all clients may announce together. The largest list has half of it. */
  MAX_HELD_BYTES: number
  /** The trusted proxies: the number of hops, or their IP addresses and networks; `false` for none. */
  TRUST_PROXY: false | number | string[]
  /** The origins of the browser apps in the given order; empty if the variable is unset. */
  FRONTEND_URL: string[]
}

/** Secrets that container platforms can mount as files. `NAME_FILE` contains the path. */
const MOUNTED = [
  'DATABASE_URL', 'JWT_SECRET', 'ADMIN_PASSWORD', 'IDP_CLIENT_SECRET', 'METRICS_TOKEN', 'SMTP_URL',
] as const

/** URLs that paths are appended to, so a slash at the end is removed. */
const BASES = ['PUBLIC_URL', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const

/**
 * Reads the configuration from `environment` and, for unset variables, from `.env` if it exists. An empty value counts
 * as unset. Throws a StartupError of one line that describes each invalid variable. Without these checks, the service
 * would start with a wrong value of 30 of 46 variables: with `5s` as DATABASE_TIMEOUT, every operation would fail.
 */
export function loadConfig (environment: NodeJS.ProcessEnv = process.env, dotenv = '.env'): Config {
  const given = withoutEmpty({ ...readDotenv(dotenv), ...withoutEmpty(environment) })
  for (const name of MOUNTED) readMounted(given, name)
  for (const name of Object.keys(variables.properties)) {
    if (wasNotUtf8(given[name] ?? '')) throw new StartupError(`${name} must be text in UTF-8`)
  }
  const config = validate(given)
  if (config.DATABASE_URL) readDatabaseUrl(config.DATABASE_URL)

  if (Boolean(config.ADMIN_EMAIL) !== Boolean(config.ADMIN_PASSWORD)) {
    throw new StartupError('ADMIN_EMAIL and ADMIN_PASSWORD must be set together')
  }
  if (config.SMTP_URL && !config.MAIL_FROM) throw new StartupError('MAIL_FROM must be set with SMTP_URL')
  if (config.NODE_ENV === 'production') {
    if (!config.JWT_SECRET) throw new StartupError('JWT_SECRET must be set in production: at least 32 characters')
    if (!config.DATABASE_URL && !given.DATA_DIR) {
      throw new StartupError('DATABASE_URL must be set in production (or DATA_DIR, to keep an embedded database there)')
    }
  }
  for (const name of BASES) config[name] &&= config[name].replace(/\/$/, '')
  return {
    ...config,
    TRUST_PROXY: readProxies(config.TRUST_PROXY),
    MAX_TEXT_BYTES: Math.min(config.MAX_TEXT_BYTES, config.MAX_BODY_BYTES),
    MAX_HELD_BYTES: config.MAX_HELD_BYTES ?? defaultHeldBytes(),
    FRONTEND_URL: config.FRONTEND_URL?.split(',').map(url => new URL(url).origin) ?? [],
  }
}

/**
 * The maximum size of a list or another cached response. For a larger one, the operation fails as declared. Without
 * this limit, the service would close the connections of all clients that want it.
 */
export const maxBodyBytes = ({ MAX_HELD_BYTES }: Config) => Math.floor(MAX_HELD_BYTES / 2)

/** Returns a quarter of the memory limit of the control group, or of 512 MB without a limit. */
export function defaultHeldBytes (limit = process.constrainedMemory()) {
  return Math.floor((limit > 0 && limit < totalmem() ? limit : 2 ** 29) / 4)
}

const ajv = new Ajv({ allErrors: true, coerceTypes: true, useDefaults: true, removeAdditional: 'all' })
  .addFormat('email', isEmail)
  .addFormat('proxies', areProxies)
  .addFormat('postgres', isDatabaseUrl)
  .addFormat('origins', areOrigins)
  .addFormat('issuer', isSecureUrl)
  .addFormat('web', isWeb)
  .addFormat('base', isBase)
  .addFormat('smtp', isSmtp)
  .addFormat('mailbox', value => parseMailbox(value) !== undefined)
  .addFormat('time-zone', isTimeZone)

/** Converts the values and adds the defaults. */
function validate (given: NodeJS.Dict<string>) {
  const config: object = { ...given }
  if (ajv.validate<Static<typeof variables>>(variables, config)) return config
  const names = new Set(ajv.errors!.map(({ instancePath }) => instancePath.slice(1)))
  const rules: Record<string, { description?: string }> = variables.properties
  throw new StartupError([...names].map(name => `${name} must be ${rules[name]!.description}`).join('; '))
}

/**
 * Reads the variables in a file such as `.env`, if it exists. Throws a StartupError if the file cannot be read. The
 * example app (examples/spa/start.js) also calls it.
 */
export function readDotenv (path: string) {
  try {
    return parseEnv(decodeUtf8(readFileSync(path)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new StartupError(`Cannot read ${path}: ${(error as Error).message}`)
  }
}

function readMounted (given: NodeJS.Dict<string>, name: typeof MOUNTED[number]) {
  const file = given[`${name}_FILE`]
  if (!file) return
  if (given[name]) throw new StartupError(`Only one of ${name} and ${name}_FILE may be set`)
  try {
    given[name] = decodeUtf8(readFileSync(file)).trimEnd()
  } catch (error) {
    throw new StartupError(`${name}_FILE must be the path of a readable file: ${(error as Error).message}`)
  }
}

function withoutEmpty (given: NodeJS.Dict<string>) {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''))
}

function areProxies (value: string) {
  return /^(false|[1-9]\d?)$/.test(value) || value.split(',').every(entry => isNetwork(entry.trim()))
}

/** Tells whether this is an IP address or a network in CIDR notation. Refuses `/0`, which would trust every client. */
function isNetwork (value: string) {
  const [, address = '', length] = /^([\da-f:.]+)(?:\/([1-9]\d*))?$/i.exec(value) ?? []
  const version = isIP(address)
  return version !== 0 && (!length || Number(length) <= (version === 4 ? 32 : 128))
}

function readProxies (value: string) {
  if (value === 'false') return false
  return /^\d+$/.test(value) ? Number(value) : value.split(',').map(entry => entry.trim())
}

function isWeb (value: string) {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
}

/** Tells whether paths can be appended to this URL. */
export function isBase (value: string) {
  return isWeb(value) && !/[?#\s]/.test(value)
}

function isSmtp (value: string) {
  try {
    const { protocol, hostname, username, password, pathname, search, hash } = new URL(value)
    decodeURIComponent(username + password)
    // A password without a user would be ignored.
    return /^smtps?:$/.test(protocol) && hostname !== '' && (username !== '' || password === '') &&
      /^\/?$/.test(pathname) && /^(\?tls=unverified)?$/.test(search + hash)
  } catch {
    return false
  }
}

function isTimeZone (value: string) {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: value }))
  } catch {
    return false
  }
}

function areOrigins (value: string) {
  // A URL without path, query, fragment and user equals its origin. A closing slash is accepted.
  return value.split(',').every(url => isWeb(url) && new URL(url).origin === new URL(url).href.replace(/\/$/, ''))
}

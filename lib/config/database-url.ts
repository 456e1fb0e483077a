import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { ConnectionOptions } from 'node:tls'

import { StartupError } from './startup-error.ts'

const SESSIONS = ['read-write', 'read-only', 'primary', 'standby', 'prefer-standby'] as const

/**
 * `postgres://[user[:password]@][host][:port][/database][?name=value&…]`, as libpq reads it. A password may also
 * contain an unencoded `@`. A list of hosts matches, because it gets a better error later.
 */
const GRAMMAR = new RegExp('^postgres(?:ql)?://(?:([^:@/]*)(?::([^@/]*|[^/?]*))?@)?' +
  '(\\[[^\\]/?]*\\]|[^/?@]*,[^/?@]*|[^:/?@[\\]]*)(?::(\\d*))?(?:/([^?]*))?(?:\\?(.*))?$', 's')

/** The supported parameters with their valid values. */
const PARAMETERS: Record<string, RegExp> = {
  host: /./,
  port: /^\d+$/,
  user: /./,
  password: /./,
  dbname: /./,
  sslmode: /^(disable|prefer|require|verify-ca|verify-full)$/,
  ssl: /^true$/,
  sslrootcert: /./,
  sslcert: /./,
  sslkey: /./,
  channel_binding: /^(disable|prefer|require)$/,
  gssencmode: /^(disable|prefer)$/,
  client_encoding: /^(auto|utf-?8)$/i,
  connect_timeout: /^\d+$/,
  target_session_attrs: new RegExp(`^(any|${SESSIONS.join('|')})$`),
  application_name: /./,
  options: /./,
}

const DOCUMENT = 'docs/run/deploy.md, "The address of the database"'

/** Tells whether this has the form of a PostgreSQL URL. */
export function isDatabaseUrl (value: string) {
  return GRAMMAR.test(value)
}

/**
 * Parses a PostgreSQL URL like libpq, as options for both drivers. By itself, postgres.js sends ten of the 17 supported
 * parameters to the server as settings, for example `sslrootcert`, and the server refuses the connection. Everything
 * that connects to the database uses it. Throws a StartupError that names an unsupported parameter or an unreadable
 * file.
 */
export function readDatabaseUrl (url: string) {
  const [, user = '', password = '', host = '', port, path = '', query = ''] = GRAMMAR.exec(url)!
  const given = readParameters(query)
  if ((given.host || host).includes(',')) {
    throw new StartupError('DATABASE_URL must have one host. Put HAProxy in front of several hosts ' +
      '(docs/run/deploy.md, "A database that fails over")')
  }
  const server = {
    // A host name, an IP address, or the folder of a Unix socket.
    host: given.host || decode(host).replace(/^\[(.*)\]$/, '$1') || 'localhost',
    port: Number(given.port || port || 5432),
    // Without these, the environment decides (PGUSER, PGPASSWORD, PGDATABASE).
    user: given.user || decode(user) || undefined,
    password: given.password || decode(password) || undefined,
    database: given.dbname || decode(path) || undefined,
  }
  if (server.port < 1 || server.port > 65_535) throw new StartupError('DATABASE_URL must have a port from 1 to 65535')
  const { application_name: name, options } = given
  return {
    ...server,
    ssl: readSsl(server.host, given),
    connectTimeoutSeconds: Number(given.connect_timeout) || undefined,
    targetSessionAttrs: SESSIONS.find(name => name === given.target_session_attrs),
    // Parameters that are sent when a connection starts.
    startup: { ...name && { application_name: name }, ...options && { options } },
  }
}

function readParameters (query: string) {
  const given: NodeJS.Dict<string> = {}
  for (const pair of query.split('&').filter(Boolean)) {
    const [, encoded = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(pair)!
    const name = decode(encoded)
    const values = Object.hasOwn(PARAMETERS, name) && PARAMETERS[name]
    if (!values) {
      throw new StartupError(`DATABASE_URL must not have the parameter "${name}" (${DOCUMENT})`)
    }
    given[name] = decode(value)
    if (given[name] && !values.test(given[name])) {
      throw new StartupError(`DATABASE_URL must not have ${name}=${given[name]} (${DOCUMENT})`)
    }
  }
  return given
}

/** Decodes a part of the URL. Unlike in forms, a plus is not a space. */
function decode (text: string) {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new StartupError('DATABASE_URL must have each % encoded as %25')
  }
}

/** Returns the TLS options that match the parameters of libpq. `prefer` means TLS if the server supports it. */
function readSsl (host: string, given: NodeJS.Dict<string>): false | 'prefer' | ConnectionOptions {
  const { sslrootcert, sslcert, sslkey, channel_binding: binding } = given
  const isSystem = sslrootcert === 'system'
  const hasFiles = Boolean(sslrootcert || sslcert)
  let mode = given.sslmode || (isSystem ? 'verify-full' : given.ssl ? 'require' : 'prefer')
  // The drivers do not support channel binding. Verifying the server's certificate also prevents interception.
  if (binding === 'require' && mode !== 'disable') mode = 'verify-full'
  if (isSystem && mode !== 'verify-full') {
    throw new StartupError('DATABASE_URL must have sslmode=verify-full with sslrootcert=system')
  }
  if (mode === 'verify-ca' && !sslrootcert) {
    throw new StartupError('DATABASE_URL must have sslrootcert with sslmode=verify-ca')
  }
  if (mode === 'disable' || host.startsWith('/')) return false
  if (mode === 'prefer' && !hasFiles) return 'prefer'
  return {
    ...sslrootcert && !isSystem && { ca: readPem('sslrootcert', sslrootcert) },
    ...sslcert && { cert: readPem('sslcert', sslcert) },
    ...sslkey && { key: readPem('sslkey', sslkey) },
    // The expected subject of the certificate. The drivers set it for host names, but not for IP addresses.
    ...isIP(host) && { host },
    rejectUnauthorized: mode === 'verify-full' || Boolean(sslrootcert),
    ...mode !== 'verify-full' && { checkServerIdentity: () => undefined },
  }
}

function readPem (name: string, path: string) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new StartupError(`DATABASE_URL must have the path of a readable file as ${name}: ${(error as Error).message}`)
  }
}

import type { FastifyRequest, FastifyServerOptions } from 'fastify'
import pretty from 'pino-pretty'

const SECRETS = ['password', 'token', 'idToken', 'secret', 'authorization', 'cookie', '["set-cookie"]']

/** pino's paths to everything secret: in the line itself, in an object of it, in the headers of such an object. */
const redact = {
  paths: [
    ...SECRETS,
    ...SECRETS.flatMap(name => [`*.${name}`, `*.headers.${name}`].map(path => path.replace('.[', '['))),
    // PostgreSQL quotes the refused row here, password hash and all.
    'err.detail',
  ],
  censor: '[redacted]',
}

/** Queries are left out: on `/auth/google/callback` they carry the code and the state of a sign-in. */
function req ({ id, method, url, host, ip }: FastifyRequest) {
  return { id, method, path: url.split('?', 1)[0], host, ip }
}

/**
 * The options of the service's log: pino, one JSON object a line with the request id in it, or coloured lines for a
 * person at a terminal; secrets, tokens, cookies and passwords are redacted.
 */
export function loggerOptions (level: string, output: NodeJS.WriteStream = process.stdout) {
  return {
    level,
    redact,
    serializers: { req },
    stream: output.isTTY
      ? pretty({ destination: output, colorize: true, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss' })
      : output,
  } satisfies FastifyServerOptions['logger']
}

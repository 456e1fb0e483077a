import {
  type FastifyBaseLogger, type FastifyInstance, type FastifyReply, type FastifyRequest, type FastifyServerOptions,
  LogController,
} from 'fastify'
import { type DestinationStream, type LogFn, pino } from 'pino'
import pretty from 'pino-pretty'

import { standardOutput } from './log-output.ts'
import { onEnd } from './request-end.ts'
import { traceOf } from './trace-context.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The ids of the request's span, if tracing is on. */
    span?: { traceId: string, spanId: string } | null
  }
}

const SECRETS = ['password', 'token', 'idToken', 'secret', 'authorization', 'cookie', '["set-cookie"]']

/** pino's paths to secrets: in the line, in an object of the line, and in the headers of such an object. */
const redact = {
  paths: [
    ...SECRETS,
    ...SECRETS.flatMap(name => [`*.${name}`, `*.headers.${name}`].map(path => path.replace('.[', '['))),
    // PostgreSQL quotes the refused row here, including the password hash.
    'err.detail',
  ],
  censor: '[redacted]',
}

/** Characters besides LF that some programs treat as line breaks. JSON does not escape them. */
const LINE_ENDS = /[\u0085\u2028\u2029]/g

/** Requests and responses in lines of Fastify, without headers and bodies. */
const serializers = {
  req: ({ method, url }: FastifyRequest) => ({ method, path: pathOf(url) }),
  res: ({ statusCode }: FastifyReply) => ({ status: statusCode }),
}

const escape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/**
 * Creates the logger of the service. By itself, Fastify writes two lines per request, with a query that can contain the
 * code of a sign-in. This logger writes one line, by pino: a JSON object, or coloured at a terminal. Redacts secrets.
 * Escapes line breaks, so that clients cannot forge lines.
 */
export function createLogger (level: string, output: DestinationStream = logStream()) {
  return pino({ level, redact, serializers, hooks: { streamWrite: line => line.replace(LINE_ENDS, escape) } }, output)
}

/** Returns the destination of the log: standard output or `output`, coloured at a terminal. */
export function logStream (
  output: DestinationStream & { isTTY?: boolean } = process.stdout.isTTY ? process.stdout : standardOutput
): DestinationStream {
  return output.isTTY
    ? pretty({ destination: output, colorize: true, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss' })
    : output
}

/** Resolves when every line is written, or after a second. */
export function flushLog (logger: Logger) {
  return new Promise<void>(resolve => logger.flush(() => resolve()))
}

export type Logger = ReturnType<typeof createLogger>

/** Fastify's options for this logger. `logRequests` logs the requests. */
export function logOptions (logger: Logger) {
  return {
    loggerInstance: logger as FastifyBaseLogger,
    logController: new ErroredRequests(),
    childLoggerFactory: (_logger, bindings, options, { headers }) =>
      deferChild(
        () => logger.child({ ...bindings, ...traceOf(headers.traceparent) }, options), options.level ?? logger.level
      ),
  } satisfies FastifyServerOptions
}

/** Creates a child logger on first use, because few requests log additional lines and a child takes 2 µs. */
function deferChild (create: () => Logger, level: string): FastifyBaseLogger {
  let child: Logger | undefined
  const log = () => (child ??= create())
  return {
    level,
    fatal: (...line: Parameters<LogFn>) => log().fatal(...line),
    error: (...line: Parameters<LogFn>) => log().error(...line),
    warn: (...line: Parameters<LogFn>) => log().warn(...line),
    info: (...line: Parameters<LogFn>) => log().info(...line),
    debug: (...line: Parameters<LogFn>) => log().debug(...line),
    trace: (...line: Parameters<LogFn>) => log().trace(...line),
    silent () {},
    child: (...parameters) => log().child(...parameters),
  }
}

/** The levels at which requests are logged. Routes can override the level. */
const LEVELS_OF_REQUESTS = new Set(['info', 'debug', 'trace'])

/** A path segment that may be a secret, such as the token of a calendar. Ids are shorter. */
const SECRET_SEGMENT = /[\w%~-]{43,}/g

/**
 * Returns the path of a URL without email addresses and possible secrets: tokens, and the query, which may contain the
 * code of a sign-in.
 */
export function pathOf (url: string) {
  const query = url.indexOf('?')
  const path = (query < 0 ? url : url.slice(0, query)).replace(SECRET_SEGMENT, '[redacted]')
  if (!/@|%40/.test(path)) return path
  return path.replace(/[^/]+/g, segment => /@|%40/.test(segment) ? '[redacted]' : segment)
}

/** Requests that have a line about the error of their response. */
const errored = new WeakSet<FastifyRequest>()

/** Logs errors of responses. */
class ErroredRequests extends LogController {
  override incomingRequest () {}

  override requestCompleted (error: Error | null | undefined, request: FastifyRequest, reply: FastifyReply) {
    if (!error) return
    errored.add(request)
    request.log.error({ err: error, ...lineOf(request, reply, reply.statusCode) }, 'request errored')
  }

  override streamError (error: NodeJS.ErrnoException, request: FastifyRequest, reply: FastifyReply) {
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') super.streamError(error, request, reply)
  }
}

/**
 * Logs each request once when it ends, unless `requestCompleted` has logged its error. A response that breaks off also
 * has Fastify's warning.
 */
export function logRequests (app: FastifyInstance, logger: Logger) {
  // These fields cannot contain secrets, so redaction would only cost time.
  const log = logger.child({}, { redact: [] })
  onEnd(app, (request, reply, status, isSent) => {
    if (errored.has(request) || !LEVELS_OF_REQUESTS.has(request.log.level)) return
    log.info(lineOf(request, reply, status), isSent ? 'request completed' : 'request aborted')
  })
}

function lineOf (request: FastifyRequest, { elapsedTime }: FastifyReply, status: number) {
  const { id, method, url, headers, span } = request
  return {
    reqId: id,
    method,
    path: pathOf(url),
    status,
    responseTime: Math.round(elapsedTime * 1000) / 1000,
    ...traceOf(headers.traceparent),
    ...span,
  }
}

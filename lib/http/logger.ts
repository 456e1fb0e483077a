import {
  type FastifyBaseLogger, type FastifyInstance, type FastifyReply, type FastifyRequest, type FastifyServerOptions,
  LogController,
} from 'fastify'
import {
  type Bindings, type ChildLoggerOptions, type DestinationStream, type LevelWithSilent, type LogFn, pino,
} from 'pino'
import pretty from 'pino-pretty'

import { onAborted } from './aborted.ts'
import { standardOutput } from './log-output.ts'
import { type RawRequest, traceOf } from './trace-context.ts'

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

/** Characters besides LF at which some programs end a line. JSON leaves them as they are. */
const LINE_ENDS = /[\u0085\u2028\u2029]/g

const escape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/**
 * Creates the log of the service: pino, one JSON object a line, or coloured lines at a terminal. Secrets are
 * redacted. Nothing that a client sends can end a line.
 */
export function createLogger (level: string, output: DestinationStream = logStream()) {
  return pino({ level, redact, hooks: { streamWrite: line => line.replace(LINE_ENDS, escape) } }, output)
}

/** Takes the lines of a log to standard output, or to `output`. At a terminal they are coloured. */
export function logStream (
  output: DestinationStream & { isTTY?: boolean } = process.stdout.isTTY ? process.stdout : standardOutput
): DestinationStream {
  return output.isTTY
    ? pretty({ destination: output, colorize: true, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss' })
    : output
}

/** Resolves when every line is written, or cannot be within a second. */
export function flushLog (logger: Logger) {
  return new Promise<void>(resolve => logger.flush(() => resolve()))
}

export type Logger = ReturnType<typeof createLogger>

/** Fastify's options for this log: one line a request when it is done. */
export function logOptions (logger: Logger) {
  return {
    loggerInstance: logger as FastifyBaseLogger,
    logController: new CompletedRequests(logger),
    childLoggerFactory: (_logger, bindings, options, request) => new RequestLogger(logger, request, bindings, options),
  } satisfies FastifyServerOptions
}

/** The levels at which requests are logged. A route may have one of its own. */
const LEVELS_OF_REQUESTS = new Set(['info', 'debug', 'trace'])

/** A segment of a path that may be a secret, such as the token of a calendar; ids are shorter. */
const SECRET_SEGMENT = /[\w%~-]{43,}/g

/** The path of a URL, without what may be secret: the query, which may carry the code of a sign-in, and tokens. */
export function pathOf (url: string) {
  const query = url.indexOf('?')
  return (query < 0 ? url : url.slice(0, query)).replace(SECRET_SEGMENT, '[redacted]')
}

/** Logs each request once, when it is done. */
class CompletedRequests extends LogController {
  readonly #log: Logger

  constructor (logger: Logger) {
    super()
    // None of these fields can be secret, so redaction would only cost time.
    this.#log = logger.child({}, { redact: [] })
  }

  override incomingRequest () {}

  override requestCompleted (error: Error | null | undefined, request: FastifyRequest, reply: FastifyReply) {
    const line = () => lineOf(request, reply, reply.statusCode)
    if (error) request.log.error({ err: error, ...line() }, 'request errored')
    else if (LEVELS_OF_REQUESTS.has(request.log.level)) this.#log.info(line(), 'request completed')
  }
}

/** Logs requests whose clients have gone before they had their response. */
export function logAborted (app: FastifyInstance) {
  onAborted(app, (request, reply, status) => {
    if (!LEVELS_OF_REQUESTS.has(request.log.level)) return
    app.log.info(lineOf(request, reply, status), 'request aborted')
  })
}

function lineOf ({ id, method, url, raw }: FastifyRequest, { elapsedTime }: FastifyReply, status: number) {
  return {
    reqId: id,
    method,
    path: pathOf(url),
    status,
    responseTime: Math.round(elapsedTime * 1000) / 1000,
    ...traceOf(raw),
  }
}

/** Logs in the name of a request. Few requests log anything else, so the pino child is created when one does. */
class RequestLogger implements FastifyBaseLogger {
  readonly level: LevelWithSilent
  readonly #parent: Logger
  readonly #request: RawRequest
  readonly #bindings: Bindings
  readonly #options: ChildLoggerOptions
  #child: Logger | undefined

  constructor (parent: Logger, request: RawRequest, bindings: Bindings, options: ChildLoggerOptions) {
    this.level = (options.level ?? parent.level) as LevelWithSilent
    this.#parent = parent
    this.#request = request
    this.#bindings = bindings
    this.#options = options
  }

  get #log () {
    this.#child ??= this.#parent.child({ ...this.#bindings, ...traceOf(this.#request) }, this.#options)
    return this.#child
  }

  fatal (...line: Parameters<LogFn>) { this.#log.fatal(...line) }
  error (...line: Parameters<LogFn>) { this.#log.error(...line) }
  warn (...line: Parameters<LogFn>) { this.#log.warn(...line) }
  info (...line: Parameters<LogFn>) { this.#log.info(...line) }
  debug (...line: Parameters<LogFn>) { this.#log.debug(...line) }
  trace (...line: Parameters<LogFn>) { this.#log.trace(...line) }
  silent () {}

  child (bindings: Bindings, options?: ChildLoggerOptions) {
    return this.#log.child(bindings, options)
  }
}

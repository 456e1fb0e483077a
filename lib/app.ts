import { maxHeaderSize } from 'node:http'
import { join } from 'node:path'

import autoload from '@fastify/autoload'
import Fastify, { type FastifyInstance } from 'fastify'

import type { Config } from './config.ts'
import { isEmail, isPassword, isText, isUrl } from './formats.ts'
import { isWithin } from './http/client-network.ts'
import { sendClientError } from './http/client-error.ts'
import { createHttpServer } from './http/server.ts'
import { logAborted, type Logger, logOptions } from './http/logger.ts'
import { requestIdOf } from './http/trace-context.ts'
import { toDecodable } from './http/url.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The configuration; see lib/config.ts. */
    config: Config
    /** Whether this service is only described (`npm run openapi`): it never connects to a database. */
    describeOnly: boolean
  }
}

/** The longest body, in bytes, of a route that declares no `bodyLimit`: it takes no texts that people write. */
const SMALL_BODY = 16_384

/**
 * Builds the service from everything in `plugins/` and `routes/`. It opens its database on `ready` or `listen`, which
 * throw a StartupError when that fails, and closes it on `close`.
 */
export function buildApp (
  config: Config,
  logger?: Logger,
  { describeOnly = false }: { describeOnly?: boolean } = {}
): FastifyInstance {
  const { TRUST_PROXY } = config
  // Dates in requests that name no zone are in UTC, wherever the service runs.
  process.env.TZ = 'UTC'
  const app: FastifyInstance = Fastify({
    ...logger && logOptions(logger),
    genReqId: ({ headers }) => requestIdOf(headers['x-request-id']),
    // Given a number, Fastify would trust no proxy.
    trustProxy: typeof TRUST_PROXY === 'number'
      ? (_address, hop) => hop < TRUST_PROXY
      : TRUST_PROXY && isWithin(TRUST_PROXY),
    serverFactory: handler => createHttpServer(config, handler),
    bodyLimit: Math.min(SMALL_BODY, config.MAX_BODY_BYTES),
    routerOptions: {
      ignoreTrailingSlash: true,
      // Any text can stand in place of an id, and is then an unknown id.
      maxParamLength: maxHeaderSize,
    },
    ajv: {
      // A request is validated and left as it came; every issue is reported.
      customOptions: { coerceTypes: false, useDefaults: false, removeAdditional: false, allErrors: true },
      onCreate (ajv) {
        ajv.addFormat('email', isEmail)
          .addFormat('password', isPassword).addFormat('text', isText).addFormat('url', isUrl)
          .addFormat('url-or-empty', value => value === '' || isUrl(value))
        // Lengths count what JavaScript's `length` counts. As a constructor option it would warn of its deprecation.
        ajv.opts.unicode = false
      },
    },
    // An id that cannot be decoded is an unknown one.
    rewriteUrl: ({ url = '' }) => toDecodable(url),
    clientErrorHandler: sendClientError,
    // While the service closes, open connections get their response and are then closed.
    return503OnClosing: false,
    // A migration waits for its locks for up to an hour. What else a start waits for has a timeout of its own.
    pluginTimeout: 0,
  })
  app.decorate('config', config)
  app.decorate('describeOnly', describeOnly)
  if (logger) logAborted(app)
  app.register(autoload, { dir: join(import.meta.dirname, '../plugins') })
  app.register(autoload, { dir: join(import.meta.dirname, '../routes') })
  return app
}

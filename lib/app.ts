import { maxHeaderSize } from 'node:http'
import { join } from 'node:path'

import autoload from '@fastify/autoload'
import Fastify, { type FastifyInstance } from 'fastify'

import type { Config } from './config/config.ts'
import { FORMATS } from './values/formats.ts'
import { isProxyOf } from './http/client-network.ts'
import { sendClientError } from './http/client-error.ts'
import { Connections } from './http/connections.ts'
import { createHttpServer } from './http/http-server.ts'
import { type Logger, logOptions, logRequests } from './http/logger.ts'
import { requestIdOf } from './http/trace-context.ts'
import { toDecodable } from './http/decodable-url.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The configuration; see lib/config/config.ts. */
    config: Config
    /** Whether the app only describes its API (`npm run openapi`), without connecting to a database. */
    describeOnly: boolean
    /** The open connections of the server. */
    connections: Connections
  }
}

/** Maximum body size in bytes for routes without a `bodyLimit`, which do not take long texts. */
const SMALL_BODY = 16_384

/**
 * Builds the service from `plugins/` and `routes/`. `ready` and `listen` open the database, or reject with a
 * StartupError. `close` closes it.
 */
export function buildApp (
  config: Config,
  logger?: Logger,
  { describeOnly = false }: { describeOnly?: boolean } = {}
): FastifyInstance {
  const connections = new Connections()
  const app: FastifyInstance = Fastify({
    ...logger && logOptions(logger),
    genReqId: ({ headers }) => requestIdOf(headers['x-request-id']),
    trustProxy: config.TRUST_PROXY !== false && isProxyOf(config),
    serverFactory: handler => createHttpServer(config, connections, handler),
    bodyLimit: Math.min(SMALL_BODY, config.MAX_BODY_BYTES),
    routerOptions: {
      ignoreTrailingSlash: true,
      // Any text can stand in place of an id, and is then an unknown id.
      maxParamLength: maxHeaderSize,
    },
    ajv: {
      // Validation does not change requests, and reports all issues.
      customOptions: { coerceTypes: false, useDefaults: false, allErrors: true, allowUnionTypes: true },
      onCreate (ajv) {
        for (const [name, { check }] of Object.entries(FORMATS)) ajv.addFormat(name, check)
        // The contract counts characters as JavaScript's `length` does. As a constructor option, Ajv prints a warning.
        ajv.opts.unicode = false
      },
    },
    // plugins/errors.ts writes the response. By default, Fastify would write a message with all issues.
    schemaErrorFormatter: () => new Error('Validation error'),
    // An id that cannot be decoded counts as an unknown id.
    rewriteUrl: ({ url = '' }) => toDecodable(url),
    clientErrorHandler: (error, socket) => sendClientError(error, socket, connections.get(socket)?.last),
    // While the service closes, requests on open connections still get responses.
    return503OnClosing: false,
    // A migration may wait for locks for up to an hour. Other steps of the start have their own timeouts.
    pluginTimeout: 0,
  })
  app.decorate('config', config)
  app.decorate('describeOnly', describeOnly)
  app.decorate('connections', connections)
  if (logger) logRequests(app, logger)
  app.register(autoload, { dir: join(import.meta.dirname, '../plugins') })
  app.register(autoload, { dir: join(import.meta.dirname, '../routes') })
  return app
}

import { loadConfig } from './config/config.ts'
import { createLogger } from './http/logger.ts'
import { run } from './shutdown.ts'
import { StartupError } from './config/startup-error.ts'
import { runMain } from './startup.ts'
import { shutdownTimeouts } from './config/timeout.ts'

// Dates in requests without a time zone are in UTC on every server.
process.env.TZ = 'UTC'

/**
 * Number of connections that may wait until the event loop accepts them. Linux takes at most `net.core.somaxconn`, and
 * drops the others. Their clients connect again after 1, 3, 7 and 15 seconds. With Node's 511, 700 of 1,500 clients
 * that came within a second waited that long. A longer queue would delay new clients during a flood of connections,
 * because Node accepts one connection in each turn of the event loop.
 */
const BACKLOG = 2048

await runMain(async () => {
  const [argument] = process.argv.slice(2)
  if (argument !== undefined) {
    throw new StartupError(`Unexpected argument "${argument}". Environment variables configure the service.`)
  }
  const config = loadConfig()
  const { HOST, PORT } = config
  // Loaded after the configuration, so that invalid variables are reported at once.
  const { buildApp } = await import('./app.ts')
  const logger = createLogger(config.LOG_LEVEL)
  const app = buildApp(config, logger)
  await run(app, { host: HOST, port: PORT, backlog: BACKLOG }, logger, shutdownTimeouts(config).total)
    .catch(error => { throw explain(error, `${HOST}:${PORT}`) })
})

/** Turns an error of `listen` into a message that says what to do. */
function explain (error: NodeJS.ErrnoException, address: string) {
  if (!['listen', 'getaddrinfo'].includes(error.syscall ?? '')) return error
  return new StartupError(error.code === 'EADDRINUSE'
    ? `${address} is in use. Stop the program that listens there, or set PORT.`
    : `Cannot listen on ${address}: ${error.message}`)
}

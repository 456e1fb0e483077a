import closeWithGrace from 'close-with-grace'

import { buildApp } from './app.ts'
import { type Config, loadConfig } from './config.ts'
import { createLogger } from './logger.ts'
import { runMain } from './main.ts'
import { StartupError } from './startup-error.ts'

/** How long a stop may take in all, in milliseconds: the delay, what runs, closing the database, and some more. */
const graceOf = ({ STOP_DELAY, DATABASE_TIMEOUT }: Config) => (STOP_DELAY + 2 * DATABASE_TIMEOUT + 10) * 1000

/** Signals of a crash. A handler would return to what crashed, again and again, and the process would never end. */
const CRASHES: closeWithGrace.AllEvents[] = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV']

await runMain(async () => {
  const config = loadConfig()
  const logger = createLogger(config.LOG_LEVEL)
  const app = buildApp(config, logger)
  const start = app.listen({ host: config.HOST, port: config.PORT })
  let isStopping = false
  const grace = closeWithGrace({
    delay: graceOf(config), logger: app.log, skip: CRASHES,
  }, async ({ err, signal }) => {
    isStopping = true
    if (err) {
      app.log.fatal({ err }, 'Stopping after an error that nobody caught')
      await app.close()
    } else {
      app.log.info(`Stopping on ${signal}`)
      // What watches files passes Ctrl-C on as SIGTERM, after the SIGINT. A second SIGINT still ends it at once.
      process.removeAllListeners('SIGTERM').on('SIGTERM', () => {})
      // Before it listens nobody waits for it, and what the start opens is closed when that is through.
      await (app.server.listening ? app.stop() : Promise.allSettled([app.close(), start]))
    }
  })
  try {
    await start
  } catch (error) {
    // Told to stop it refuses to listen; and Ctrl-C ends what makes the database, too.
    if (isStopping) return
    grace.uninstall()
    await app.close()
    throw explain(error as NodeJS.ErrnoException, `${config.HOST}:${config.PORT}`)
  }
})

/** Says in words why the address cannot be listened on. */
function explain (error: NodeJS.ErrnoException, address: string) {
  if (error.syscall !== 'listen' && error.syscall !== 'getaddrinfo') return error
  return new StartupError(error.code === 'EADDRINUSE'
    ? `${address} is taken: stop what listens there, or set PORT`
    : `Cannot listen on ${address}: ${error.message}`)
}

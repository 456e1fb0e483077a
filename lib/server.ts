import closeWithGrace from 'close-with-grace'
import type { FastifyBaseLogger } from 'fastify'

import { buildApp } from './app.ts'
import { loadConfig } from './config.ts'
import { createLogger, flushLog } from './http/logger.ts'
import { runMain, StartupError } from './errors.ts'
import { shutdownTimeouts } from './shutdown-timeouts.ts'

/** Signals of a crash. A handler would return to what crashed, again and again, and the process would never end. */
const CRASHES: closeWithGrace.AllEvents[] = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV']

/** Milliseconds within which a second SIGINT is the same Ctrl-C: npm and the service get it, and npm passes it on. */
const SAME_CTRL_C = 500

await runMain(async () => {
  const config = loadConfig()
  const logger = createLogger(config.LOG_LEVEL)
  const app = buildApp(config, logger)
  const start = app.listen({ host: config.HOST, port: config.PORT })
  let isStopping = false
  // close-with-grace takes its listeners away before it adds others. A signal in between would end the process.
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.on(signal, () => {})
  const grace = closeWithGrace({
    delay: shutdownTimeouts(config).total * 1000, logger: app.log, skip: CRASHES,
  }, async ({ err, signal }) => {
    isStopping = true
    if (err) {
      app.log.fatal({ err }, 'Stopping after an error that nobody caught')
      await app.close()
    } else {
      app.log.info(`Stopping on ${signal}`)
      logger.flush()
      handleRepeatedSignals(app.log)
      // Before it listens nobody waits for it, and what the start opens is closed when that is through.
      await (app.server.listening ? app.stop() : Promise.allSettled([app.close(), start]))
    }
    await flushLog(logger)
  })
  try {
    await start
    await flushLog(logger)
  } catch (error) {
    // Told to stop it refuses to listen; and Ctrl-C ends what makes the database, too.
    if (isStopping) return
    grace.uninstall()
    await app.close()
    throw explain(error as NodeJS.ErrnoException, `${config.HOST}:${config.PORT}`)
  }
})

/**
 * Replaces what close-with-grace does on a second signal: exit at once. Only a second Ctrl-C may. npm repeats a SIGTERM
 * that all processes get, file watchers send one after a Ctrl-C, and a terminal that closes sends SIGHUP.
 */
function handleRepeatedSignals (log: FastifyBaseLogger) {
  const first = performance.now()
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) replaceListeners(signal, () => {})
  replaceListeners('SIGINT', () => {
    if (performance.now() - first < SAME_CTRL_C) return
    log.warn('Ending at once on SIGINT')
    process.exit(1)
  })
}

/** Replaces the listeners of a signal. It always has one: without, the signal would end the process at once. */
function replaceListeners (signal: NodeJS.Signals, listener: () => void) {
  const replaced = process.listeners(signal)
  process.on(signal, listener)
  for (const other of replaced) process.off(signal, other)
}

/** Says in words why the address cannot be listened on. */
function explain (error: NodeJS.ErrnoException, address: string) {
  if (error.syscall !== 'listen' && error.syscall !== 'getaddrinfo') return error
  return new StartupError(error.code === 'EADDRINUSE'
    ? `${address} is taken: stop what listens there, or set PORT`
    : `Cannot listen on ${address}: ${error.message}`)
}

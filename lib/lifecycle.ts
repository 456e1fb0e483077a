import closeWithGrace from 'close-with-grace'

import { flushLog, type Logger } from './http/logger.ts'

/** Signals of a crash. A handler would return to what crashed, again and again, and the process would never end. */
const CRASHES: closeWithGrace.AllEvents[] = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV']

/** Milliseconds within which a second SIGINT is the same Ctrl-C: npm and the service get it, and npm passes it on. */
const SAME_CTRL_C = 500

/** What a process runs until it is told to stop. */
export interface Service {
  /** Resolves when it serves. */
  start (): Promise<unknown>
  /** Ends what runs and closes everything, also while it starts. */
  stop (): Promise<unknown>
  /** Closes everything, after an error. */
  close (): Promise<unknown>
  /** Ends what has not stopped in time. */
  kill? (): void
}

/**
 * Starts a service, and stops it on SIGTERM, SIGHUP, SIGINT or an error that nobody caught: the process then ends, with
 * exit code 1 after an error, or when it took longer than so many seconds. Rejects when the start fails.
 */
export async function run (service: Service, logger: Logger, seconds: number) {
  const start = service.start()
  let isStopping = false
  // close-with-grace takes its listeners away before it adds others. A signal in between would end the process.
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.on(signal, () => {})
  const grace = closeWithGrace({
    delay: seconds * 1000,
    logger,
    skip: CRASHES,
    onTimeout (delay) {
      logger.error(`killed by timeout (${delay}ms)`)
      service.kill?.()
    },
  }, async ({ err, signal }) => {
    isStopping = true
    if (err) {
      logger.fatal({ err }, 'Stopping after an error that nobody caught')
      await service.close()
    } else {
      logger.info(`Stopping on ${signal}`)
      handleRepeatedSignals(logger)
      await service.stop()
    }
    await flushLog(logger)
  })
  try {
    await start
  } catch (error) {
    // Told to stop it refuses to listen; and Ctrl-C ends what makes the database, too.
    if (isStopping) return
    grace.uninstall()
    await service.close()
    throw error
  }
}

/**
 * Replaces what close-with-grace does on a second signal: exit at once. Only a second Ctrl-C may. npm repeats a SIGTERM
 * that all processes get, file watchers send one after a Ctrl-C, and a terminal that closes sends SIGHUP.
 */
function handleRepeatedSignals (logger: Logger) {
  const first = performance.now()
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) replaceListeners(signal, () => {})
  replaceListeners('SIGINT', () => {
    if (performance.now() - first < SAME_CTRL_C) return
    logger.warn('Ending at once on SIGINT')
    flushLog(logger).then(() => process.exit(1))
  })
}

/** Replaces the listeners of a signal. It always has one: without, the signal would end the process at once. */
function replaceListeners (signal: NodeJS.Signals, listener: () => void) {
  const replaced = process.listeners(signal)
  process.on(signal, listener)
  for (const other of replaced) process.off(signal, other)
}

import type { FastifyInstance, FastifyListenOptions } from 'fastify'

import { flushLog, type Logger } from './http/logger.ts'

/** Time within which a second SIGINT belongs to the same Ctrl-C: the service gets it from the terminal and from npm. */
const SAME_CTRL_C_MS = 500

/**
 * Starts the service, and stops it on SIGTERM, SIGHUP, SIGINT or an uncaught error. Then the process exits, with code 1
 * after an error or if the stop takes longer than `seconds`. Rejects if the start fails.
 */
export async function run (
  app: Pick<FastifyInstance, 'listen' | 'stop' | 'close'>, address: FastifyListenOptions, logger: Logger,
  seconds: number
) {
  let start: Promise<unknown>
  let isServing = false
  /** Start of the stop, in milliseconds of `performance.now()`. */
  let stopsSince: number | undefined

  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.on(signal, onSignal)
  for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, onError)
  try {
    start = app.listen(address)
    await start
    isServing = true
  } catch (error) {
    // After a signal, errors of the start are expected: a stopped service refuses to listen, and Ctrl-C also ends
    // initdb.
    if (stopsSince !== undefined) return
    stopsSince = performance.now()
    // An error of `close` would hide the cause.
    await Promise.allSettled([app.close()])
    throw error
  }

  function onSignal (signal: NodeJS.Signals) {
    if (stopsSince === undefined) {
      logger.info(`Stopping on ${signal}`)
      // Waits for the start, so that everything it opens is closed.
      end(() => isServing ? app.stop() : Promise.allSettled([app.close(), start]), 0)
    } else if (signal === 'SIGINT' && performance.now() - stopsSince >= SAME_CTRL_C_MS) {
      // Only a second Ctrl-C exits at once. Other repeated signals are ignored: npm passes on a SIGTERM that all
      // processes get, file watchers send SIGTERM after a Ctrl-C, and a closing terminal sends SIGHUP.
      logger.warn('Exiting at once on a second SIGINT')
      exit(1)
    }
  }

  function onError (err: unknown) {
    logger.fatal({ err }, 'Stopping after an uncaught error')
    if (stopsSince === undefined) end(() => app.close(), 1)
    else exit(1)
  }

  async function end (close: () => Promise<unknown>, code: number) {
    stopsSince = performance.now()
    // Otherwise, only the supervisor would end a stop that hangs, and the log would not say so.
    setTimeout(() => {
      logger.error(`killed by timeout (${seconds * 1000}ms)`)
      exit(1)
    }, seconds * 1000)
    try {
      await close()
      exit(code)
    } catch (err) {
      logger.error({ err }, 'Cannot stop cleanly')
      exit(1)
    }
  }

  async function exit (code: number) {
    await flushLog(logger)
    process.exit(code)
  }
}

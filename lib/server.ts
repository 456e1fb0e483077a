import cluster from 'node:cluster'
import { inspect } from 'node:util'

import { limitHashing } from './auth/passwords.ts'
import { Channel } from './cluster/channel.ts'
import { Primary, type WorkerStart } from './cluster/primary.ts'
import { type Config, loadConfig } from './config.ts'
import { runMain, StartupError } from './errors.ts'
import { createLogger } from './http/logger.ts'
import { run } from './lifecycle.ts'
import { shutdownTimeouts } from './shutdown-timeouts.ts'

await (cluster.isWorker ? work() : runMain(main))

async function main () {
  const config = loadConfig()
  if (config.WORKERS === 1) return serve(config)
  const logger = createLogger(config.LOG_LEVEL)
  await run(new Primary(config, logger), logger, shutdownTimeouts(config).total)
}

/** Serves as one of several workers, which the primary has started. It prints why a worker could not start. */
async function work () {
  const primary = new Channel(process)
  try {
    const { config, share } = await primary.request<WorkerStart>('start')
    limitHashing(share)
    await serve(config, primary)
  } catch (error) {
    await primary.request('failed', error instanceof StartupError ? error.message : inspect(error))
    process.exit(1)
  }
}

async function serve (config: Config, primary?: Channel) {
  const { buildApp } = await import('./app.ts')
  const logger = createLogger(config.LOG_LEVEL)
  const app = buildApp(config, logger, { primary })
  const { worker, total } = shutdownTimeouts(config)
  let start: PromiseLike<string>
  await run({
    async start () {
      start = app.listen({ host: config.HOST, port: config.PORT })
      await start
    },
    // Before it listens nobody waits for it, and what the start opens is closed when that is through.
    stop: () => app.server.listening ? app.stop() : Promise.allSettled([app.close(), start]),
    close: async () => app.close(),
  }, logger, primary ? worker : total).catch(error => {
    throw explain(error, `${config.HOST}:${config.PORT}`)
  })
}

/** Says in words why the address cannot be listened on. */
function explain (error: NodeJS.ErrnoException, address: string) {
  // In a worker the call is `bind`.
  if (!['listen', 'bind', 'getaddrinfo'].includes(error.syscall ?? '')) return error
  return new StartupError(error.code === 'EADDRINUSE'
    ? `${address} is taken: stop what listens there, or set PORT`
    : `Cannot listen on ${address}: ${error.message}`)
}

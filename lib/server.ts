import cluster from 'node:cluster'

import { limitHashing } from './auth/passwords.ts'
import { Channel } from './cluster/channel.ts'
import { shareConfig } from './cluster/share.ts'
import { Supervisor } from './cluster/supervisor.ts'
import { type Config, loadConfig } from './config.ts'
import { runMain, StartupError } from './errors.ts'
import { createLogger, logStream } from './http/logger.ts'
import { run, shutdownTimeouts } from './shutdown.ts'

await runMain(cluster.isWorker ? work : main)
// Without it, the channel to the supervisor keeps a failed worker alive.
if (cluster.isWorker && process.exitCode) process.exit()

async function main () {
  const config = loadConfig()
  if (config.WORKERS === 1) return serve(config)
  const output = logStream()
  const logger = createLogger(config.LOG_LEVEL, output)
  await run(new Supervisor(config, logger, output), logger, shutdownTimeouts(config).total)
}

/** Serves as one of several workers, on the database that their supervisor has prepared. */
async function work () {
  const config = { ...loadConfig(), MIGRATE_ON_START: false, ADMIN_EMAIL: undefined, ADMIN_PASSWORD: undefined }
  const share = { index: Number(process.env.WORKER_INDEX), count: config.WORKERS }
  limitHashing(share)
  await serve(shareConfig(config, share), new Channel(process))
}

async function serve (config: Config, supervisor?: Channel) {
  const { buildApp } = await import('./app.ts')
  const logger = createLogger(config.LOG_LEVEL)
  const app = buildApp(config, logger, { supervisor })
  const { worker, total } = shutdownTimeouts(config)
  await run({
    start: async () => app.listen({ host: config.HOST, port: config.PORT }),
    stop: () => app.stop(),
    close: async () => app.close(),
  }, logger, supervisor ? worker : total).catch(error => {
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

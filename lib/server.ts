import closeWithGrace from 'close-with-grace'

import { buildApp } from './app.ts'
import { loadConfig } from './config.ts'
import { loggerOptions } from './logger.ts'
import { runMain } from './main.ts'
import { StartupError } from './startup-error.ts'

/** How long running requests and the database may take to finish on SIGTERM and SIGINT, in milliseconds. */
const GRACE = 15_000

await runMain(async () => {
  const config = loadConfig()
  const app = buildApp(config, loggerOptions(config.LOG_LEVEL))
  const grace = closeWithGrace({ delay: GRACE, logger: app.log }, async ({ err, signal }) => {
    if (err) app.log.fatal({ err }, 'Stopping after an error that nobody caught')
    else app.log.info(`Stopping on ${signal}`)
    await app.close()
  })
  try {
    await app.listen({ host: config.HOST, port: config.PORT })
  } catch (error) {
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

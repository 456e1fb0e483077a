import fp from 'fastify-plugin'

import { runDraws } from '../lib/agenda/draws.ts'
import { tellDraw } from '../lib/email/enqueue-seats.ts'

/** Draws seats while the service runs. */
export default fp(async app => {
  const { sql, outbox, log, describeOnly } = app
  if (describeOnly) return
  const stopping = new AbortController()
  let running: Promise<void> | undefined
  app.addHook('onReady', async () => {
    running = runDraws({ sql, log, tell: tellDraw(outbox) }, stopping.signal)
  })
  app.addHook('preClose', async () => stopping.abort())
  // The database closes later, because this plugin depends on it.
  app.addHook('onClose', async () => running)
}, { name: 'draws', dependencies: ['database', 'email'] })

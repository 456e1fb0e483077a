import type { onRequestHookHandler } from 'fastify'
import fp from 'fastify-plugin'

import { createOutbox, type Outbox } from '../lib/email/outbox.ts'
import { Sender } from '../lib/email/sender.ts'
import { createTransport, isEmailConfigured } from '../lib/email/transport.ts'
import { HttpError } from '../lib/http/errors.ts'
import { FRONTEND_REQUIRED, Message, Named, type RefusingHook } from '../lib/values/schemas.ts'

declare module 'fastify' {
  interface FastifyInstance {
    outbox: Outbox
    /** Responds with 501 if email is not configured. Use it in `onRequest` before the guard. */
    requireEmail: onRequestHookHandler & RefusingHook
    /** Responds with 501 if emails cannot be sent or cannot contain links. Use it like `requireEmail`. */
    requireEmailLinks: onRequestHookHandler & RefusingHook
  }
}

/** Error message if email is not configured. */
const EMAIL_REQUIRED = 'Email is not configured'

const EmailRequired = Named('EmailRequired', Message(EMAIL_REQUIRED))
const EmailLinksRequired = Named('EmailLinksRequired', Message(EMAIL_REQUIRED, FRONTEND_REQUIRED))

/** Sends the emails in the outbox while the service runs. */
export default fp(async app => {
  const { sql, config, log, describeOnly } = app
  const transport = isEmailConfigured(config) && await createTransport(config, log)
  const sender = transport
    // The links in emails contain tokens that are derived from the secret.
    ? new Sender({ sql, config: { ...config, JWT_SECRET: app.jwtSecret }, log, transport })
    : undefined

  const outbox = createOutbox(sql, config, sender)
  app.decorate('outbox', outbox)
  app.decorate('requireEmail', Object.assign(async () => {
    if (!sender) throw new HttpError(501, EMAIL_REQUIRED)
  }, { responses: { 501: EmailRequired } }))
  app.decorate('requireEmailLinks', Object.assign(async () => {
    if (!outbox.canLink) throw new HttpError(501, sender ? FRONTEND_REQUIRED : EMAIL_REQUIRED)
  }, { responses: { 501: EmailLinksRequired } }))
  if (describeOnly) return

  if (config.NODE_ENV === 'production' && !outbox.canLink) {
    log.info(sender
      ? `${FRONTEND_REQUIRED}. Emails do not contain links, and operations that need links respond with 501. ` +
        'Set FRONTEND_URL.'
      : `${EMAIL_REQUIRED}. Operations that need email respond with 501. Set SMTP_URL.`)
  }
  if (!sender) return
  app.addHook('onReady', async () => sender.start())
  // The sender stops while requests finish, so it does not prolong a stop.
  app.addHook('preClose', async () => { sender.stop() })
  // Waits for the end of the stop. The database closes later, because this plugin depends on it.
  app.addHook('onClose', () => sender.stop())
}, { name: 'email', dependencies: ['auth', 'database'] })

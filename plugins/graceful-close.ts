import fp from 'fastify-plugin'

declare module 'fastify' {
  interface FastifyInstance {
    /** Whether the service is stopping: it finishes what runs and takes no more. */
    isClosing (): boolean
  }
}

/** Closes each connection with its last answer while the service stops; Fastify would wait for idle ones to go. */
export default fp(async app => {
  let closing = false
  app.addHook('preClose', async () => { closing = true })
  app.decorate('isClosing', () => closing)

  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (closing) reply.header('connection', 'close')
    done()
  })
}, { name: 'graceful-close' })

import fp from 'fastify-plugin'

/** Lets requests wait for a later turn of the event loop when there are many; see lib/http/connections.ts. */
export default fp(async app => {
  app.addHook('onRequest', ({ socket }, _reply, done) => {
    if (app.connections.has(socket)) app.connections.begin(socket, done)
    // A request of `inject` has no connection.
    else done()
  })
  // After the plugin that joins small chunks. Until then, a body of 64 KB may take 4 MB of memory.
}, { name: 'turns', dependencies: ['json-body', 'network'] })

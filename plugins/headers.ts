import helmet from '@fastify/helmet'
import fp from 'fastify-plugin'

/**
 * The headers that keep a browser from doing with an answer what it is not for: it is JSON, to be shown in no frame and
 * to load nothing; the docs page has a policy of its own. Nobody stores it, unless its route says otherwise
 * (`cacheControl`): most of it is about persons.
 */
export default fp(async app => {
  await app.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    // The rest is for documents, or for browsers that are no more, and would be most of a short answer's bytes.
    crossOriginOpenerPolicy: false,
    crossOriginResourcePolicy: false,
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xFrameOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
  })
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('cache-control', 'no-store')
    done()
  })
}, { name: 'headers' })

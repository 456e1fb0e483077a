import fp from 'fastify-plugin'

import { IdentityProvider } from '../lib/auth/identity-provider.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The OpenID Connect provider of IDP_ISSUER. */
    idp: IdentityProvider
  }
}

/** Sign-in through an identity provider. */
export default fp(async app => {
  app.decorate('idp', new IdentityProvider(app.config, app.log))
}, { name: 'identity-provider' })

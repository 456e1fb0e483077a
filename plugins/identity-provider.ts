import fp from 'fastify-plugin'

import { IdentityProvider } from '../lib/auth/identity-provider.ts'
import { deriveKey, jwtSecretOf } from '../lib/secret-file.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The OpenID Connect provider of IDP_ISSUER. */
    idp: IdentityProvider
  }
}

/** Sign-in through an identity provider. */
export default fp(async app => {
  const verifierKey = deriveKey(await jwtSecretOf(app.config), 'code verifiers')
  app.decorate('idp', new IdentityProvider(app.config, app.log, verifierKey))
}, { name: 'identity-provider' })

// @fastify/oauth2 takes its endpoints when it is registered. They are discovered with the first sign-in, so that the
// service starts while the provider is away; by then Fastify registers nothing more. So the plugin is registered on an
// application of its own, for each discovery document.
import oauth2 from '@fastify/oauth2'
import Fastify from 'fastify'

import type { Config } from '../config.ts'

/** The simple-oauth2 client that @fastify/oauth2 exposes as `oauth2`, so far as it is used; its types leave it out. */
export interface OAuth2Client {
  authorizeURL (parameters: object): string
  getToken (parameters: object): Promise<{ token: { access_token?: string, id_token?: string } }>
}

/** The endpoints of a provider, as its discovery document has them. */
export interface Endpoints {
  authorization_endpoint: string
  token_endpoint: string
  token_endpoint_auth_methods_supported?: string[]
}

/**
 * Makes the client for the endpoints of a discovery document. It sends its secret by Basic authentication, the default
 * of OpenID Connect Discovery 1.0 (§ 3), or in the body where the provider supports only that. Its requests time out
 * after so many milliseconds.
 */
export async function createOAuth2Client (
  endpoints: Endpoints, config: Config, timeout: number
): Promise<OAuth2Client> {
  const [authorize, token] = [new URL(endpoints.authorization_endpoint), new URL(endpoints.token_endpoint)]
  const methods = endpoints.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
  const inBody = methods.includes('client_secret_post') && !methods.includes('client_secret_basic')
  const app = Fastify()
  app.register(oauth2, {
    name: 'idp',
    callbackUri: config.IDP_REDIRECT_URI!,
    credentials: {
      client: { id: config.IDP_CLIENT_ID!, secret: config.IDP_CLIENT_SECRET! },
      auth: {
        authorizeHost: authorize.origin,
        // A query stays (RFC 6749, § 3.1).
        authorizePath: authorize.pathname + authorize.search,
        tokenHost: token.origin,
        tokenPath: token.pathname + token.search,
      },
      http: { timeout },
      options: { authorizationMethod: inBody ? 'body' : 'header' },
    },
  })
  await app.ready()
  return app.getDecorator<{ oauth2: OAuth2Client }>('idp').oauth2
}

// @fastify/oauth2 needs its endpoints when it is registered. The first sign-in discovers them, so that the service can
// start while the provider is unavailable. Fastify does not accept plugins by then, so each discovery document gets a
// separate Fastify instance with this plugin.
import oauth2 from '@fastify/oauth2'
import Fastify from 'fastify'

import type { Config } from '../config/config.ts'

/** The used part of the simple-oauth2 client that @fastify/oauth2 exposes as `oauth2`. Its types omit the client. */
export interface OAuth2Client {
  authorizeURL (parameters: object): string
  getToken (parameters: object): Promise<{ token: { access_token?: string, id_token?: string } }>
}

/** The endpoints in a discovery document. */
export interface Endpoints {
  authorization_endpoint: string
  token_endpoint: string
  token_endpoint_auth_methods_supported?: string[]
}

/**
 * Creates a client for the endpoints of a discovery document. It sends its secret by Basic authentication, the default
 * of OpenID Connect Discovery 1.0 (§ 3), or in the body if the provider supports only that.
 */
export async function createOAuth2Client (
  endpoints: Endpoints, config: Config, timeoutMs: number
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
        // Endpoints may have a query (RFC 6749, § 3.1).
        authorizePath: authorize.pathname + authorize.search,
        tokenHost: token.origin,
        tokenPath: token.pathname + token.search,
      },
      http: { timeout: timeoutMs },
      options: { authorizationMethod: inBody ? 'body' : 'header' },
    },
  })
  await app.ready()
  return app.getDecorator<{ oauth2: OAuth2Client }>('idp').oauth2
}

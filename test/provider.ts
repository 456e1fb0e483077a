// OpenID Connect providers for tests, on loopback: a real one, and a fake one whose responses a test can replace.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

import { type CryptoKey, exportJWK, generateKeyPair, type JWTHeaderParameters, type JWTPayload, SignJWT } from 'jose'

import type { Teardown } from './scope.ts'

/** How the service is registered as a client of these providers. */
export const CLIENT = {
  IDP_CLIENT_ID: 'community platform',
  IDP_CLIENT_SECRET: 'a client secret: of the tests & odd',
  IDP_REDIRECT_URI: 'http://localhost:3000/auth/google/callback',
}

/** Listens on a free port of loopback until the test ends. */
export async function serve (t: Teardown, listener: RequestListener, host = '127.0.0.1') {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  })
  return { origin: `http://${host}:${(server.address() as AddressInfo).port}` }
}

/** A person with an account at the provider. */
export interface Account {
  sub: string
  password: string
  email?: string
  email_verified?: boolean
  given_name?: string
  family_name?: string
  picture?: string
}

/** A new account with random ids; `claims` replace the defaults. */
export const newAccount = (claims: Partial<Account> = {}): Account => ({
  sub: randomUUID(),
  password: 'provider password',
  email: `${randomUUID()}@example.org`,
  email_verified: true,
  given_name: 'Ada',
  family_name: 'Lovelace',
  picture: 'https://example.org/ada.png',
  ...claims,
})

/** The redirect URI for ID tokens that a test fetches itself, without a listener. */
const OWN_CALLBACK = 'http://localhost:9/'

const PAGE = `<!doctype html><title>Sign in</title>
<form method="post">
  <input name="sub" placeholder="Who are you?"><input name="password" type="password"><button>Sign in</button>
</form>`

/** Starts a real provider with a login page, for clients that authenticate in this way. Tests add to `accounts`. */
export async function startProvider (
  t: Teardown, redirectUri = CLIENT.IDP_REDIRECT_URI, authMethod = 'client_secret_basic'
) {
  const accounts: Account[] = []
  const listeners: RequestListener[] = []
  const { origin } = await serve(t, (request, response) => listeners[0]!(request, response))
  const client = [CLIENT.IDP_CLIENT_ID, CLIENT.IDP_CLIENT_SECRET] as const
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })

  // Imported lazily, because it is big.
  const { default: Provider } = await import('oidc-provider')
  const provider = new Provider(origin, {
    clients: [{
      client_id: client[0],
      client_secret: client[1],
      redirect_uris: [redirectUri, OWN_CALLBACK],
      token_endpoint_auth_method: authMethod,
    }],
    clientAuthMethods: [authMethod],
    claims: { email: ['email', 'email_verified'], profile: ['given_name', 'family_name', 'picture'] },
    // As Google does, puts the profile into the ID token.
    conformIdTokenClaims: false,
    jwks: { keys: [{ ...await exportJWK(privateKey), alg: 'RS256', use: 'sig' }] },
    cookies: { keys: ['a cookie secret of the tests'] },
    ttl: { AccessToken: 60, Grant: 60, IdToken: 60, Interaction: 60, Session: 60 },
    features: { devInteractions: { enabled: false } },
    pkce: { required: () => false },
    interactions: { url: (_ctx, { uid }) => `/login/${uid}` },
    findAccount (_ctx, id) {
      const { password, ...claims } = accounts.find(({ sub }) => sub === id)!
      return { accountId: id, claims: () => claims }
    },
  })
  provider.on('server_error', (_ctx, error) => { throw error })

  const oidc = provider.callback()
  listeners.push(async (request, response) => {
    if (!request.url!.startsWith('/login/')) return oidc(request, response)
    if (request.method === 'GET') return response.setHeader('content-type', 'text/html').end(PAGE)
    const form = new URLSearchParams(await text(request))
    const account = accounts.find(({ sub, password }) => sub === form.get('sub') && password === form.get('password'))
    if (!account) return response.writeHead(303, { location: request.url }).end()
    const grant = new provider.Grant({ accountId: account.sub, clientId: client[0] })
    grant.addOIDCScope('openid email profile')
    const consent = { grantId: await grant.save() }
    return provider.interactionFinished(request, response, { login: { accountId: account.sub }, consent })
  })

  /** Follows the redirects of an authorization request, and submits the login form. Returns the final redirect. */
  async function signIn (url: string | URL, { sub, password }: Account) {
    const cookies = new Map<string, string>()
    const visit = async (url: URL, form?: URLSearchParams): Promise<URL> => {
      if (url.origin !== origin) return url
      const headers = { cookie: [...cookies].map(pair => pair.join('=')).join('; ') }
      const request = form ? { method: 'POST', body: form } : {}
      const response = await fetch(url, { ...request, headers, redirect: 'manual' })
      for (const cookie of response.headers.getSetCookie()) {
        const [name, value] = cookie.split(';', 1)[0]!.split('=') as [string, string]
        cookies.set(name, value)
      }
      await response.arrayBuffer()
      if (response.status === 200) return visit(url, new URLSearchParams({ sub, password }))
      return visit(new URL(response.headers.get('location')!, url))
    }
    return visit(new URL(url))
  }

  /** Fetches an ID token for our client, as a browser app does without the service. */
  async function idToken (account: Account) {
    const query = new URLSearchParams({
      client_id: client[0], response_type: 'code', redirect_uri: OWN_CALLBACK, scope: 'openid email profile',
    })
    const { searchParams } = await signIn(`${origin}/auth?${query}`, account)
    const response = await fetch(`${origin}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(client.map(encodeURIComponent).join(':'))}` },
      body: new URLSearchParams({
        grant_type: 'authorization_code', code: searchParams.get('code')!, redirect_uri: OWN_CALLBACK,
      }),
    })
    return (await response.json() as { id_token: string }).id_token
  }

  return { issuer: origin, accounts, signIn, idToken }
}

/** A response of the fake provider: JSON, or a function that writes it. */
type FakeResponse = object | string | null | ((response: ServerResponse) => void)

const ENDPOINTS = {
  authorization_endpoint: '/authorize', token_endpoint: '/token', userinfo_endpoint: '/userinfo', jwks_uri: '/keys',
}

const DISCOVERY = '/.well-known/openid-configuration'

/** Shared by all fake providers, because generating an RSA key is slow. */
let signingKey: ReturnType<typeof newKey> | undefined

/** Starts a provider that accepts any code. A test may replace its `responses`, by path. */
export async function startFakeProvider (t: Teardown) {
  const requests: string[] = []
  const received: { path: string, authorization: string | undefined, body: string }[] = []
  const { origin } = await serve(t, async (request, response) => {
    const path = request.url!
    requests.push(path)
    received.push({ path, authorization: request.headers.authorization, body: await text(request) })
    const fakeResponse = responses[path]
    if (typeof fakeResponse === 'function') return fakeResponse(response)
    response.setHeader('content-type', 'application/json').end(JSON.stringify(fakeResponse))
  })

  const rsa = await (signingKey ??= newKey('RS256', 'one'))
  const account = newAccount()
  const { password, ...claims } = account
  const endpoints = Object.entries(ENDPOINTS).map(([name, path]) => [name, `${origin}${path}`])
  const metadata = { issuer: origin, ...Object.fromEntries(endpoints) } as Record<string, unknown>
  const responses: Record<string, FakeResponse> = {
    [DISCOVERY]: metadata,
    '/token': { access_token: randomUUID(), token_type: 'Bearer' },
    '/userinfo': claims,
    '/keys': { keys: [rsa.jwk] },
  }

  /** A valid ID token, but for these claims, header and key; `undefined` removes a claim. */
  async function idToken (
    others: Record<string, unknown> = {}, header: Partial<JWTHeaderParameters> = {}, key: SigningKey = rsa.key
  ) {
    const now = Math.floor(Date.now() / 1000)
    const payload = { ...claims, iss: origin, aud: CLIENT.IDP_CLIENT_ID, iat: now, exp: now + 300, ...others }
    return new SignJWT(payload as JWTPayload).setProtectedHeader({ alg: 'RS256', kid: 'one', ...header })
      .sign(key as CryptoKey)
  }

  return { issuer: origin, requests, received, responses, metadata, claims, rsa, idToken }
}

type SigningKey = Parameters<SignJWT['sign']>[0] | Uint8Array

/** A signing key, and the JWK that a provider publishes for it. */
export async function newKey (alg: string, kid: string) {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  const key: SigningKey = privateKey
  return { key, publicKey, jwk: { ...await exportJWK(publicKey), kid, alg, use: 'sig' } }
}

export const html = (response: ServerResponse) => {
  response.setHeader('content-type', 'text/html').end('<!doctype html><title>Sorry</title>')
}
export const fails = (response: ServerResponse) => { response.writeHead(503).end('{}') }
export const closesConnection = (response: ServerResponse) => { response.destroy() }
export const never = () => {}

import { createHash, createHmac } from 'node:crypto'

import type { FastifyBaseLogger } from 'fastify'
import { createRemoteJWKSet, jwtVerify, type JWTPayload } from 'jose'

import type { Config } from '../config.ts'
import { isSecureUrl } from '../formats.ts'
import { PROVIDER_REQUEST_SECONDS, withTimeout } from '../timeout.ts'
import type { Endpoints, OAuth2Client } from './oauth2-client.ts'

/** Timeout of one request to the provider. */
const TIMEOUT_MS = 1000 * PROVIDER_REQUEST_SECONDS

/** How long its discovery document and its keys are used before they are fetched again. */
const LIFETIME_MS = 24 * 60 * 60 * 1000

/** How long they are used further after they could not be fetched. */
const RETRY_MS = 60_000

/** How far its clock may be off. */
const SKEW_SECONDS = 60

const SCOPES = ['openid', 'email', 'profile']

/** The fields used of a discovery document (OpenID Connect Discovery 1.0, § 3). */
interface Metadata extends Endpoints {
  issuer: string
  userinfo_endpoint: string
  jwks_uri: string
  code_challenge_methods_supported?: string[]
}

/** Google's published endpoints, so that its sign-in starts without a request to it. */
const GOOGLE: Metadata = {
  issuer: 'https://accounts.google.com',
  authorization_endpoint: 'https://accounts.google.com/o/oauth2/v2/auth',
  token_endpoint: 'https://oauth2.googleapis.com/token',
  userinfo_endpoint: 'https://openidconnect.googleapis.com/v1/userinfo',
  jwks_uri: 'https://www.googleapis.com/oauth2/v3/certs',
  code_challenge_methods_supported: ['plain', 'S256'],
}

/** A person as the provider knows them. `email` is absent when it has no address, or none that it has verified. */
export interface Identity {
  id: string
  email?: string
  firstName: string
  lastName: string
  avatar: string | null
}

/** The client and the keys that one discovery document describes. */
interface Provider {
  metadata: Metadata
  keys: ReturnType<typeof createRemoteJWKSet>
  client?: Promise<OAuth2Client>
}

/**
 * An OpenID Connect provider, by its issuer. Nothing is asked of it before the first use. What is learned is kept, and
 * fetched again after a day. While the provider is away, what is known is used further.
 */
export class IdentityProvider {
  readonly #config: Config
  readonly #log: Pick<FastifyBaseLogger, 'warn'>
  readonly #verifierKey: Buffer
  #known: Provider | undefined
  /** When what is known is fetched again, in milliseconds of `Date.now()`. */
  #expires = 0
  #fetching: Promise<Provider> | undefined

  /** The key, which instances share, makes the code verifiers of PKCE. */
  constructor (config: Config, log: Pick<FastifyBaseLogger, 'warn'>, verifierKey: Buffer) {
    this.#config = config
    this.#log = log
    this.#verifierKey = verifierKey
  }

  /**
   * Where to send a browser to sign in; it comes back to IDP_REDIRECT_URI with the state and a code, which can be
   * exchanged with this nonce only.
   */
  async authorizationUrl (state: string, nonce: string): Promise<string> {
    const client = await this.#client()
    const verifier = await this.#codeVerifier(nonce)
    return client.authorizeURL({
      redirect_uri: this.#config.IDP_REDIRECT_URI,
      scope: SCOPES,
      state,
      nonce,
      ...verifier && {
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
      },
      access_type: 'offline',
      prompt: 'consent',
      include_granted_scopes: 'true',
    })
  }

  /**
   * Exchanges the code of the sign-in with this nonce. Returns the access token, `undefined` when the provider's
   * response has none, and the subject of the ID token beside it, if there is one. That is verified like any other; if
   * it has a nonce, it must be the one of the sign-in.
   */
  async exchangeCode (code: string, nonce: string): Promise<{ accessToken?: string, subject?: string }> {
    const client = await this.#client()
    const verifier = await this.#codeVerifier(nonce)
    const { token } = await client.getToken({
      code, redirect_uri: this.#config.IDP_REDIRECT_URI, ...verifier && { code_verifier: verifier },
    }).catch(error => {
      // The error itself carries the request, code and client secret included; for a response that is not JSON, the
      // message quotes a part of it.
      const { message, data } = error as Error & { data?: { isResponseError?: boolean, payload?: Buffer } }
      const reason = data?.payload && !data.isResponseError ? 'Its response is not JSON' : message
      throw new Error(`The identity provider does not exchange the code: ${reason}`)
    })
    const { access_token: accessToken, id_token: idToken } = token
    if (!accessToken || !idToken) return { accessToken }
    const claims = await this.#verify(idToken)
    if (claims.nonce !== undefined && claims.nonce !== nonce) throw new Error('The ID token has another nonce')
    return { accessToken, subject: claims.sub }
  }

  /**
   * Asks who the holder of an access token is; `undefined` when the provider refuses, or names another subject than the
   * ID token: its claims must not be used then (OpenID Connect Core 1.0, § 5.3.2).
   */
  async fetchIdentity (accessToken: string, subject?: string): Promise<Identity | undefined> {
    const { metadata } = await this.#discover()
    try {
      const claims = await fetchJson<JWTPayload>(metadata.userinfo_endpoint, { authorization: `Bearer ${accessToken}` })
      if (subject !== undefined && claims.sub !== subject) throw new Error('The ID token has another subject')
      return toIdentity(claims, this.#config)
    } catch (error) {
      this.#log.warn({ err: error }, 'The identity provider does not say who signed in')
      return undefined
    }
  }

  /** Who an ID token is about. Rejects if it does not verify. */
  async verifyIdToken (idToken: string): Promise<Identity> {
    return toIdentity(await this.#verify(idToken), this.#config)
  }

  /**
   * Verifies an ID token: RS256 or ES256 by a key that the provider publishes, its issuer, our client as its audience,
   * and its lifetime. A key that is not known yet makes the keys be fetched again, at most every 30 seconds.
   */
  async #verify (idToken: string): Promise<JWTPayload> {
    const { metadata, keys } = await this.#discover()
    try {
      const { payload } = await jwtVerify(idToken, keys, {
        algorithms: ['RS256', 'ES256'],
        issuer: metadata === GOOGLE ? [GOOGLE.issuer, 'accounts.google.com'] : metadata.issuer,
        audience: this.#config.IDP_CLIENT_ID,
        clockTolerance: SKEW_SECONDS,
        requiredClaims: ['sub', 'exp'],
      })
      return payload
    } catch (error) {
      // The error itself carries the claims.
      throw new Error(`The ID token does not verify: ${(error as Error).message}`)
    }
  }

  /**
   * The code verifier of PKCE (RFC 7636), where the provider supports S256. It must come from the browser and not be
   * stored here, but the only cookie has the nonce, which the provider sees too: so the verifier is a keyed hash of it.
   */
  async #codeVerifier (nonce: string) {
    const { metadata } = await this.#discover()
    if (!metadata.code_challenge_methods_supported?.includes('S256')) return undefined
    return createHmac('sha256', this.#verifierKey).update(nonce).digest('base64url')
  }

  async #client () {
    const provider = await this.#discover()
    // Loaded at the start where it is needed, see routes/auth; it takes a third as long as everything else.
    provider.client ??= import('./oauth2-client.ts')
      .then(({ createOAuth2Client }) => createOAuth2Client(provider.metadata, this.#config, TIMEOUT_MS))
      .catch(error => {
        provider.client = undefined
        throw error
      })
    return provider.client
  }

  async #discover (): Promise<Provider> {
    if (this.#known && this.#expires > Date.now()) return this.#known
    this.#fetching ??= this.#fetch().finally(() => { this.#fetching = undefined })
    return this.#fetching
  }

  async #fetch (): Promise<Provider> {
    try {
      this.#known = await discover(this.#config.IDP_ISSUER, this.#known)
      this.#expires = Date.now() + LIFETIME_MS
    } catch (error) {
      if (!this.#known) throw error
      this.#log.warn({ err: error }, 'The identity provider does not describe itself: what is known is used further')
      this.#expires = Date.now() + RETRY_MS
    }
    return this.#known
  }
}

/** Fetches what an issuer says about itself. Its keys are kept while their address is the same. */
async function discover (issuer: string, known: Provider | undefined): Promise<Provider> {
  const metadata = issuer === GOOGLE.issuer
    ? GOOGLE
    : await fetchJson<Metadata>(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  if (metadata.issuer !== issuer) throw new Error(`The discovery document of ${issuer} is that of ${metadata.issuer}`)
  for (const name of ['authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'jwks_uri'] as const) {
    if (!isSecureUrl(metadata[name])) throw new Error(`The ${name} of ${issuer} is not an https address`)
  }
  if (known?.metadata.jwks_uri === metadata.jwks_uri) {
    await known.keys.reload()
    return { metadata, keys: known.keys }
  }
  // Without an age of their own, keys that are known are used while they cannot be fetched.
  const keys = createRemoteJWKSet(new URL(metadata.jwks_uri), { timeoutDuration: TIMEOUT_MS, cacheMaxAge: Infinity })
  return { metadata, keys }
}

/**
 * Reads a JSON object. The timeout is a timer of ours: fetch() can lose its signal to the garbage collector while it
 * reads a body, always so with `redirect: 'error'`, and then waits for minutes. A redirect is no success here either.
 */
async function fetchJson<T> (url: string, headers: Record<string, string> = {}) {
  const abort = new AbortController()
  async function read () {
    const response = await fetch(url, {
      headers: { accept: 'application/json', ...headers }, redirect: 'manual', signal: abort.signal,
    })
    if (!response.ok) throw new Error(`${url} responded with status ${response.status}`)
    return await response.json() as T
  }
  return await withTimeout(read(), TIMEOUT_MS / 1000).finally(() => abort.abort())
}

/**
 * Takes what is needed from the standard claims (OpenID Connect Core 1.0, § 5.1); throws without a subject. Names and
 * the picture lose the character NUL, which PostgreSQL cannot store.
 */
function toIdentity (claims: JWTPayload, config: Config): Identity {
  const text = (value: unknown) => typeof value === 'string' && value !== '' ? value : undefined
  const name = (value: unknown) => text(text(value)?.replaceAll('\0', ''))
  const id = text(claims.sub)
  if (!id) throw new Error('There is no subject')
  const address = text(claims.email)
  const email = address?.includes('@') && isEmailVerified(claims, config) ? address : undefined
  return {
    id,
    email,
    firstName: name(claims.given_name) ?? name(claims.name) ?? email?.split('@')[0] ?? '',
    lastName: name(claims.family_name) ?? '',
    avatar: name(claims.picture) ?? null,
  }
}

/**
 * Whether the provider vouches for the email, which signs in to the account that has it: by `true`, or by the text that
 * some providers send. IDP_EMAIL_VERIFIED=assume speaks for a provider without this claim, and overrules none.
 */
function isEmailVerified ({ email_verified: claim }: JWTPayload, { IDP_EMAIL_VERIFIED }: Config) {
  return claim === true || claim === 'true' || (claim === undefined && IDP_EMAIL_VERIFIED === 'assume')
}

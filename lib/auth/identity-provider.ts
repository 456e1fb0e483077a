import { createHmac } from 'node:crypto'

import type { FastifyBaseLogger } from 'fastify'
import { createRemoteJWKSet, jwtVerify, type JWTPayload } from 'jose'

import type { Config } from '../config/config.ts'
import { isSecureUrl, sha256 } from '../values/formats.ts'
import { RefusedError } from '../http/errors.ts'
import { PROVIDER_REQUEST_SECONDS, withTimeout } from '../config/timeout.ts'
import type { Endpoints, OAuth2Client } from './oauth2-client.ts'

/** Timeout of one request to the identity provider. */
const TIMEOUT_MS = 1000 * PROVIDER_REQUEST_SECONDS

/** Time after which the discovery document and the keys are fetched again. */
const LIFETIME_MS = 24 * 60 * 60 * 1000

/** Time until the next attempt after a failed fetch. */
const RETRY_MS = 60_000

/** Tolerated clock difference. */
const SKEW_SECONDS = 60

const SCOPES = ['openid', 'email', 'profile']

/** Codes of jose for an invalid token. Other codes mean that the keys could not be fetched. */
const INVALID_TOKENS = /^ERR_(JWT|JWS|JWKS_NO_MATCHING|JWKS_MULTIPLE|JOSE_ALG|JOSE_NOT_SUPPORTED)/

/** Used fields of a discovery document (OpenID Connect Discovery 1.0, § 3). */
interface Metadata extends Endpoints {
  issuer: string
  userinfo_endpoint: string
  jwks_uri: string
  code_challenge_methods_supported?: string[]
}

/** Google's published endpoints, so that a sign-in starts without a discovery request. */
const GOOGLE: Metadata = {
  issuer: 'https://accounts.google.com',
  authorization_endpoint: 'https://accounts.google.com/o/oauth2/v2/auth',
  token_endpoint: 'https://oauth2.googleapis.com/token',
  userinfo_endpoint: 'https://openidconnect.googleapis.com/v1/userinfo',
  jwks_uri: 'https://www.googleapis.com/oauth2/v3/certs',
  code_challenge_methods_supported: ['plain', 'S256'],
}

/** A person as the identity provider describes them. `email` is `undefined` without a verified address. */
export type Identity = ReturnType<typeof toIdentity>

/** A discovery document with its keys and client. */
interface Provider {
  metadata: Metadata
  keys: ReturnType<typeof createRemoteJWKSet>
  client?: Promise<OAuth2Client>
}

/**
 * An OpenID Connect provider. The first use fetches the discovery document and the keys, which are cached for a day.
 * Without this cache, each sign-in would wait for two more requests, of up to 5 seconds each. If the provider is
 * unavailable later, the cached documents stay in use.
 */
export class IdentityProvider {
  readonly #config: Config
  readonly #log: Pick<FastifyBaseLogger, 'warn'>
  readonly #verifierKey: Buffer
  #known: Provider | undefined
  /** Time of the next fetch, in milliseconds of `Date.now()`. */
  #expires = 0
  #fetching: Promise<Provider> | undefined

  /** `verifierKey` derives the PKCE code verifiers. All instances use the same key. */
  constructor (config: Config, log: Pick<FastifyBaseLogger, 'warn'>, verifierKey: Buffer) {
    this.#config = config
    this.#log = log
    this.#verifierKey = verifierKey
  }

  /**
   * Returns the URL of the provider's sign-in page. From there, the browser returns to IDP_REDIRECT_URI with the state
   * and a code, which can be exchanged only with this nonce.
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
        code_challenge: sha256(verifier),
        code_challenge_method: 'S256',
      },
      access_type: 'offline',
      prompt: 'consent',
      include_granted_scopes: 'true',
    })
  }

  /**
   * Exchanges the code of a sign-in. Returns the access token and the subject of the ID token, if the response contains
   * them. The ID token is verified. If it contains a nonce, the nonce must be the one from the start of the sign-in.
   */
  async exchangeCode (code: string, nonce: string): Promise<{ accessToken?: string, subject?: string }> {
    const client = await this.#client()
    const verifier = await this.#codeVerifier(nonce)
    const { token } = await client.getToken({
      code, redirect_uri: this.#config.IDP_REDIRECT_URI, ...verifier && { code_verifier: verifier },
    }).catch(error => {
      // The error contains the request with the code and client secret. If the response is not JSON, the message quotes
      // part of it.
      const { message, data } = error as Error & { data?: { isResponseError?: boolean, payload?: { error?: string } } }
      const reason = data?.payload && !data.isResponseError ? 'Its response is not JSON' : message
      // The code is invalid, expired or used (RFC 6749, § 5.2): a client has made it up, or sent it twice.
      const Failure = data?.payload?.error === 'invalid_grant' ? RefusedError : Error
      throw new Failure(`The identity provider did not exchange the code: ${reason}`)
    })
    const { access_token: accessToken, id_token: idToken } = token
    if (!accessToken || !idToken) return { accessToken }
    // This token comes from the provider, not from the client.
    const claims = await this.#verify(idToken).catch(({ message }) => { throw new Error(message) })
    if (claims.nonce !== undefined && claims.nonce !== nonce) throw new Error('The ID token contains a different nonce')
    return { accessToken, subject: claims.sub }
  }

  /**
   * Fetches the profile for an access token. Returns `undefined` if the provider refuses or if the subject differs from
   * the subject in the ID token, because its claims must not be used then (OpenID Connect Core 1.0, § 5.3.2).
   */
  async fetchIdentity (accessToken: string, subject?: string): Promise<Identity | undefined> {
    const { metadata } = await this.#discover()
    try {
      const claims = await fetchJson<JWTPayload>(metadata.userinfo_endpoint, { authorization: `Bearer ${accessToken}` })
      if (subject !== undefined && claims.sub !== subject) throw new Error('The subject differs from the ID token')
      return toIdentity(claims, this.#config)
    } catch (error) {
      this.#log.warn({ err: error }, 'Cannot fetch the profile from the identity provider')
      return undefined
    }
  }

  /** Verifies an ID token and returns its profile. Rejects an invalid token. */
  async verifyIdToken (idToken: string): Promise<Identity> {
    return toIdentity(await this.#verify(idToken), this.#config)
  }

  /**
   * Verifies an ID token: the signature (RS256 or ES256) by a published key, its issuer, our client as the audience,
   * and its lifetime. An unknown key id triggers a new fetch of the keys, at most every 30 seconds.
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
      // The original error contains the claims.
      const { code, message } = error as NodeJS.ErrnoException
      const Failure = INVALID_TOKENS.test(String(code)) ? RefusedError : Error
      throw new Failure(`The ID token is invalid: ${message}`)
    }
  }

  /**
   * Returns the PKCE code verifier (RFC 7636), if the provider supports S256. The verifier must come from the browser,
   * but the only cookie contains the nonce, which the provider also sees. Therefore, the verifier is a keyed hash of
   * the nonce.
   */
  async #codeVerifier (nonce: string) {
    const { metadata } = await this.#discover()
    if (!metadata.code_challenge_methods_supported?.includes('S256')) return undefined
    return createHmac('sha256', this.#verifierKey).update(nonce).digest('base64url')
  }

  async #client () {
    const provider = await this.#discover()
    // routes/auth preloads this module if a provider is configured, because loading takes a third of the start time.
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
      this.#log.warn({ err: error }, 'Cannot fetch the discovery document. The cached document stays in use.')
      this.#expires = Date.now() + RETRY_MS
    }
    return this.#known
  }
}

/** Fetches the discovery document of an issuer. Keeps the known keys if their URL is unchanged. */
async function discover (issuer: string, known: Provider | undefined): Promise<Provider> {
  const metadata = issuer === GOOGLE.issuer
    ? GOOGLE
    : await fetchJson<Metadata>(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  if (metadata.issuer !== issuer) throw new Error(`The discovery document of ${issuer} names ${metadata.issuer}`)
  for (const name of ['authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'jwks_uri'] as const) {
    if (!isSecureUrl(metadata[name])) throw new Error(`The ${name} of ${issuer} is not an https URL`)
  }
  if (known?.metadata.jwks_uri === metadata.jwks_uri) {
    await known.keys.reload()
    return { metadata, keys: known.keys }
  }
  // With an infinite age, known keys stay in use while the provider is unavailable.
  const keys = createRemoteJWKSet(new URL(metadata.jwks_uri), { timeoutDuration: TIMEOUT_MS, cacheMaxAge: Infinity })
  return { metadata, keys }
}

/**
 * Fetches a JSON object. A separate timer enforces the timeout, because fetch() can lose its signal to garbage
 * collection while it reads a body, and always does so with `redirect: 'error'`. A redirect counts as a failure.
 */
async function fetchJson<T> (url: string, headers: Record<string, string> = {}) {
  const abort = new AbortController()
  async function read () {
    const response = await fetch(url, {
      headers: { accept: 'application/json', ...headers }, redirect: 'manual', signal: abort.signal,
    })
    if (!response.ok) throw new Error(`status ${response.status}`)
    return await response.json() as T
  }
  return await withTimeout(read(), TIMEOUT_MS / 1000)
    .catch(cause => { throw new Error(`Cannot read ${url}: ${(cause as Error).message}`, { cause }) })
    .finally(() => abort.abort())
}

/**
 * Reads an identity from the standard claims (OpenID Connect Core 1.0, § 5.1). Throws without a subject. Removes NUL
 * from names and the picture, because PostgreSQL cannot store it.
 */
function toIdentity (claims: JWTPayload, config: Config) {
  const text = (value: unknown) => typeof value === 'string' && value !== '' ? value : undefined
  const name = (value: unknown) => text(text(value)?.replaceAll('\0', ''))
  const id = text(claims.sub)
  if (!id) throw new Error('The subject is missing')
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
 * Tells whether the provider has verified the email address, which decides the account to sign in to. Some providers
 * send the claim as text. IDP_EMAIL_VERIFIED=assume applies only if the claim is missing.
 */
function isEmailVerified ({ email_verified: claim }: JWTPayload, { IDP_EMAIL_VERIFIED }: Config) {
  return claim === true || claim === 'true' || (claim === undefined && IDP_EMAIL_VERIFIED === 'assume')
}

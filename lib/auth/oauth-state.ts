import { RefusedError } from '../http/errors.ts'
import { isParsableUrl } from '../values/formats.ts'

/** The `state` parameter, which the identity provider returns unchanged. */
interface OAuthState {
  /** The nonce, which must equal the nonce in the cookie. */
  n: string
  /** The destination: a path of the browser app. */
  r: string
  /** The origin of the browser app. */
  o?: string
}

/** Writes the state as base64url JSON. */
export function encodeState (state: OAuthState) {
  return Buffer.from(JSON.stringify(state)).toString('base64url')
}

/**
 * Reads a state from `encodeState`, with `/` as the default destination. Throws a RefusedError if it is `null` or not
 * JSON.
 */
export function decodeState (text: string): Partial<OAuthState> & Pick<OAuthState, 'r'> {
  try {
    const { n, r, o } = JSON.parse(Buffer.from(text, 'base64url').toString())
    return { n, r: typeof r === 'string' ? r : '/', o }
  } catch {
    throw new RefusedError('The state is null or not JSON')
  }
}

/**
 * Chooses the browser app to return to after a sign-in, by the URLs of Origin and Referer. Takes the first configured
 * origin with the same host name as Origin, or else as Referer, and prefers the same scheme and port. Falls back to the
 * first configured origin; `undefined` if nothing is configured.
 */
export function chooseFrontend (configured: string[], ...addresses: (string | undefined)[]) {
  for (const address of addresses) {
    if (!address || !isParsableUrl(address)) continue
    const { hostname, origin } = new URL(address)
    const candidates = configured.filter(candidate => new URL(candidate).hostname === hostname)
    if (candidates.length > 0) return candidates.find(candidate => candidate === origin) ?? candidates[0]
  }
  return configured[0]
}

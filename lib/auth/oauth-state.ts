/** The `state` parameter, which travels to the identity provider and back. */
export interface OAuthState {
  /** The nonce, which must come back beside the same one in the cookie. */
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

/** Reads what `encodeState` wrote. Throws a SyntaxError for what is no JSON. */
export function decodeState (text: string): Partial<OAuthState> {
  return Object(JSON.parse(Buffer.from(text, 'base64url').toString()))
}

/**
 * Chooses the browser app that a sign-in returns to, by the addresses of Origin and Referer: the configured origin
 * whose host is that of the first, else of the second, with its scheme and port too if there are several; else the
 * first configured. `undefined` when none is configured.
 */
export function chooseFrontend (configured: string[], ...addresses: (string | undefined)[]) {
  for (const address of addresses) {
    if (!address || !URL.canParse(address)) continue
    const { hostname, origin } = new URL(address)
    const candidates = configured.filter(candidate => new URL(candidate).hostname === hostname)
    if (candidates.length > 0) return candidates.find(candidate => candidate === origin) ?? candidates[0]
  }
  return configured[0]
}

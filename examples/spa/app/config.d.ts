// The module /config.js, which start.js generates.

/** The origin of the service. */
export const API: string

/** The issuer of the identity provider; `null` if the service has none. */
export const PROVIDER: string | null

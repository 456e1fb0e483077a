// What start.js serves as /config.js.

/** Where the service is: an origin. */
export const API: string

/** The issuer at which people may sign in, too; `null` when the service has none. */
export const PROVIDER: string | null

// The module /config.js, which start.js generates.

/** The origin of the service. */
export const API: string

/** The issuer of the identity provider; `null` if the service has none. */
export const PROVIDER: string | null

/** How the service sends emails: to people, or as files in a folder. `null` if it sends no emails. */
export const EMAILS: { folder: string | null } | null

/** The time zone of the community: MAIL_TIME_ZONE of the service. */
export const TIME_ZONE: string

/** The name of the community: COMMUNITY_NAME of the service. */
export const NAME: string

/** The largest picture that the service accepts, in bytes: MAX_PICTURE_BYTES of the service. */
export const PICTURE_BYTES: number

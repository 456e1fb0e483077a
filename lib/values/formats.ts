import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'

/** One label of a domain name. */
const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'

/** A part of the local part between dots (RFC 5322, § 3.2.3: dots must not come first, last or twice in a row). */
const ATOM = "[a-z0-9!#$%&'*+/=?^_`{|}~-]+"

/** An email address of the HTML standard (§ 4.10.5.1.5), with at least one dot in the domain. */
const EMAIL = new RegExp(`^(?=.{1,64}@)${ATOM}(?:\\.${ATOM})*@${LABEL}(?:\\.${LABEL})+$`, 'i')

/** Tells whether this is an ordinary `local@domain.tld` of at most 254 characters (RFC 5321, § 4.5.3.1.3). */
export function isEmail (value: string) {
  return value.length <= 254 && EMAIL.test(value)
}

/** Parses a sender such as `ada@example.org` or `Ada Lovelace <ada@example.org>`; `undefined` for anything else. */
export function parseMailbox (value: string) {
  const [, name, address = value] = /^"?([^"<>\p{Cc}]*?)"? *<(.+)>$/u.exec(value) ?? []
  return isEmail(address) ? { ...name && { name }, address } : undefined
}

/** Tells whether PostgreSQL can store this text. It accepts every character except NUL. */
export function isText (value: string) {
  return !value.includes('\0')
}

/** Maximum length of a name, as JavaScript counts characters. */
const NAME_LENGTH = 200

/**
 * A character that people can see, unlike the fillers of Hangul, a mark without a letter, and blank symbols: the empty
 * Braille pattern, the null notehead, and the object replacement character.
 */
const VISIBLE = /(?![\p{Default_Ignorable_Code_Point}\u2800\u{1D159}\uFFFC])[\p{L}\p{N}\p{P}\p{S}]/u

/** Tells whether people can see this text, and PostgreSQL can store it. */
export function isVisible (value: string) {
  return VISIBLE.test(value) && isText(value)
}

/** Line breaks and other control characters except tab, direction overrides, and halves of characters. */
const NOT_IN_NAMES = /(?!\t)[\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}\u202A-\u202E\u2066-\u2069]/u

/** Tells whether people can read this as a name of a person. Outside the contract, which takes any text. */
export function isName (value: string) {
  return value.length <= NAME_LENGTH && VISIBLE.test(value) && !NOT_IN_NAMES.test(value)
}

/** Tells what is wrong with a name. */
export const NOT_A_NAME =
  `must contain a visible character, at most ${NAME_LENGTH} characters, and no line breaks or direction overrides`

/** Tells whether this can be a password. Refuses lone surrogates, because all of them are encoded as the same bytes. */
export function isPassword (value: string) {
  return isText(value) && !/\p{Surrogate}/u.test(value)
}

/** Decodes UTF-8 and removes a byte order mark. Throws an Error if the bytes are not UTF-8. */
export function decodeUtf8 (bytes: Uint8Array) {
  if (!isUtf8(bytes)) throw new Error('it is not UTF-8')
  return new TextDecoder().decode(bytes)
}

/** Tells whether Node decoded an argument or variable that was not UTF-8. */
export function wasNotUtf8 (text: string) {
  return text.includes('\uFFFD')
}

/** Returns the SHA-256 of a text, base64url. */
export const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url')

/** The UUID that no row has, and that is before all others. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000'

/** Tells whether this is a UUID in PostgreSQL's notation. */
export function isUuid (value: string) {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(value)
}

/**
 * The beginning of a URL with a host of more than 1,000 characters. The name of a host has at most 253, but a URL
 * parser accepts all, and takes 30 seconds for a name of 340,000 Chinese characters. It ignores tabs and line breaks.
 */
const LONG_HOST = /^[\0- ]*(https?|wss?|ftp|file):[/\\]*[^/\\?#]{1001}/i

/** Tells whether `new URL(value)` accepts this, in a time that does not grow faster than its length. */
export const isParsableUrl = (value: string) =>
  !LONG_HOST.test(value.replace(/[\t\r\n]/g, '')) && URL.canParse(value)

/** Tells whether requests to this URL cannot be intercepted: https, or http on loopback. */
export function isSecureUrl (value: string) {
  if (!isParsableUrl(value)) return false
  const { protocol, hostname } = new URL(value)
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
}

/** Tells whether this host name of a URL is this machine. */
export function isLoopback (hostname: string) {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}

/** Tells whether `new URL(value)` accepts this and PostgreSQL can store it. */
export function isUrl (value: string) {
  return isText(value) && isParsableUrl(value)
}

/** Tells whether this is a link that a browser can follow safely: a URL of the web, not `javascript:`. */
function isWebUrl (value: string) {
  // A URL parser removes line breaks, which would begin a new line of a calendar.
  return isUrl(value) && /^https?:$/.test(new URL(value).protocol) && !/\p{Cc}/u.test(value)
}

/** Tells whether this is a date-time of ISO 8601 with an offset, of a day that exists, in a year of four digits. */
function isDateTime (value: string) {
  const [, day] = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/.exec(value) ?? []
  const [date, midnight] = [new Date(value), new Date(`${day}T00:00Z`)]
  if (isNaN(date.getTime()) || isNaN(midnight.getTime())) return false
  return midnight.toISOString().startsWith(`${day}T`) && /^(?!0000)\d{4}-/.test(date.toISOString())
}

/**
 * Reads the cursor of a page; `undefined` unless `cursorAfter` in lib/database/keyset.ts writes it exactly like this.
 * PostgreSQL does not know all date-times of JavaScript, for example no offset of 16 hours.
 */
export function parseCursor (value: string) {
  const [time = '', id = ''] = Buffer.from(value, 'base64url').toString().split(' ')
  const isWritten = isDateTime(time) && new Date(time).toISOString() === time && isUuid(id) &&
    Buffer.from(`${time} ${id}`).toString('base64url') === value
  return isWritten ? { time, id } : undefined
}

/** The formats of texts in schemas, with the message for a text that fails the check, and the format in OpenAPI. */
export const FORMATS: Record<string, { check (value: string): boolean, message: string, openapi?: string }> = {
  cursor: { check: value => parseCursor(value) !== undefined, message: 'must be the cursor of a page' },
  'date-time': {
    check: isDateTime, message: 'must be a date and time of ISO 8601 with a time zone', openapi: 'date-time',
  },
  email: { check: isEmail, message: 'must be an email address', openapi: 'email' },
  password: {
    check: isPassword, message: 'must not contain the character NUL or incomplete characters', openapi: 'password',
  },
  name: { check: isName, message: NOT_A_NAME },
  'page-size': { check: value => /^([1-9]\d?|100)$/.test(value), message: 'must be a number from 1 to 100' },
  text: { check: isText, message: 'must not contain the character NUL' },
  visible: { check: isVisible, message: 'must contain a visible character and not the character NUL' },
  url: { check: isUrl, message: 'must be a URL', openapi: 'uri' },
  'web-url': { check: isWebUrl, message: 'must be a URL with http or https', openapi: 'uri' },
  'url-or-empty': { check: value => value === '' || isUrl(value), message: 'must be a URL or empty' },
}

/**
 * Prepares text for feeds and lists: converts all line breaks, including line separators of Unicode, to line feeds, and
 * removes other control characters.
 */
export function printable (text: string) {
  return text.replace(/\r\n?|[\u2028\u2029]/g, '\n').replace(/[^\P{Cc}\t\n]|[\uFFFE\uFFFF]/gu, '')
}

/** The paragraphs of a text, as lines. An empty line ends a paragraph. */
export function paragraphsOf (text: string) {
  return printable(text).split(/\n\s*\n/).filter(part => part.trim()).map(part => part.trim().split('\n'))
}

/** Prepares text for one line. */
export function printableLine (text: string) {
  return printable(text).replace(/\s+/g, ' ').trim()
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Escapes text for HTML, on one line. */
export function escapeHtml (text: string) {
  return printableLine(text).replace(/[&<>"']/g, character => ENTITIES[character]!)
}

/** The current time for a cached query, which depends on its arguments only: a list is read once per minute. */
export const currentMinute = () => `${new Date().toISOString().slice(0, 'YYYY-MM-DDTHH:MM'.length)}:00.000Z`

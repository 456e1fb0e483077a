import { isUtf8 } from 'node:buffer'

/** One label of a domain name. */
const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'

/** A run without a dot before the `@` (RFC 5322, § 3.2.3: no dot begins, ends or follows another). */
const ATOM = "[a-z0-9!#$%&'*+/=?^_`{|}~-]+"

/** The email address of the HTML standard (§ 4.10.5.1.5), with at least one dot in the domain. */
const EMAIL = new RegExp(`^(?=.{1,64}@)${ATOM}(?:\\.${ATOM})*@${LABEL}(?:\\.${LABEL})+$`, 'i')

/** Whether this is an ordinary `local@domain.tld`, at most 254 characters long (RFC 5321, § 4.5.3.1.3). */
export function isEmail (value: string) {
  return value.length <= 254 && EMAIL.test(value)
}

/** Reads a sender such as `ada@example.org` or `Ada Lovelace <ada@example.org>`; `undefined` if it is not one. */
export function parseMailbox (value: string) {
  const [, name, address = value] = /^"?([^"<>\p{Cc}]*?)"? *<(.+)>$/u.exec(value) ?? []
  return isEmail(address) ? { ...name && { name }, address } : undefined
}

/** Whether PostgreSQL can store this as text: it takes every character but NUL. */
export function isText (value: string) {
  return !value.includes('\0')
}

/** Whether this can be a password: halves of surrogate pairs all have the same bytes, so any would do for another. */
export function isPassword (value: string) {
  return isText(value) && !/\p{Surrogate}/u.test(value)
}

/** The text of these bytes, without a byte order mark. Throws an Error when they are not UTF-8. */
export function decodeUtf8 (bytes: Uint8Array) {
  if (!isUtf8(bytes)) throw new Error('it is not text in UTF-8')
  return new TextDecoder().decode(bytes)
}

/** Whether Node has decoded this text from bytes that were not UTF-8: an argument, or a variable. */
export function wasNotUtf8 (text: string) {
  return text.includes('\uFFFD')
}

/** Whether this is a UUID as PostgreSQL writes it. */
export function isUuid (value: string) {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(value)
}

/** Whether this is an https address, or an http one on loopback: a request to it cannot be read on its way. */
export function isSecureUrl (value: string) {
  if (!URL.canParse(value)) return false
  const { protocol, hostname } = new URL(value)
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
}

/** Whether this host of a URL is this machine. */
export function isLoopback (hostname: string) {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}

/** Whether `new URL(value)` accepts this, and PostgreSQL can store it. */
export function isUrl (value: string) {
  return isText(value) && URL.canParse(value)
}

/**
 * The text as feeds and lists can carry it: line breaks are line feeds, those of Unicode too, which some readers split
 * lines at, and there is no other control character.
 */
export function printable (text: string) {
  return text.replace(/\r\n?|[\u2028\u2029]/g, '\n').replace(/[^\P{Cc}\t\n]|[\uFFFE\uFFFF]/gu, '')
}

/** The same on one line. */
export function printableLine (text: string) {
  return printable(text).replace(/\s+/g, ' ').trim()
}

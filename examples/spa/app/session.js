// Who is signed in. The token lives as long as the tab does.

/** @import { Schemas } from 'community-platform-client' */
/** @typedef {Schemas['CurrentUser']} User */

/** Emits `change` after a sign-in or sign-out, and `expired` when the service no longer accepts the token. */
export const sessionEvents = new EventTarget()

/** @type {User | null} */
let user = null

export const token = () => sessionStorage.getItem('token')

/** Who they are, as the service last told. */
export const currentUser = () => user

/**
 * Whether a role lets them do this. The role is that of the token, because it is the one that the service goes by.
 *
 * @param {...Schemas['Role']} roles
 */
export const hasRole = (...roles) => roles.some(role => role === sessionStorage.getItem('role'))

/** Whether they were given another role since they signed in. */
export const hasNewRole = () => user !== null && user.role !== sessionStorage.getItem('role')

/** @param {string} value */
export function keepToken (value) {
  sessionStorage.setItem('token', value)
  sessionStorage.removeItem('role')
}

/** @param {User} value */
export function setUser (value) {
  user = value
  if (!sessionStorage.getItem('role')) sessionStorage.setItem('role', value.role)
  sessionEvents.dispatchEvent(new Event('change'))
}

/**
 * Starts a sign-in with a provider, which returns to this address of the app. Returns the value that must come back
 * with the token. A token without it may be an attacker's, to make people use the attacker's account (login CSRF).
 *
 * @param {string} to
 */
export function beginSignIn (to) {
  const value = crypto.randomUUID()
  sessionStorage.setItem('sign-in', JSON.stringify({ value, to }))
  return value
}

/**
 * Ends the sign-in that this tab has begun, whether it is the one of this value or not. Returns where it leads to;
 * `null` when it is another one, or none was begun.
 *
 * @param {string | null} value
 * @returns {string | null}
 */
export function endSignIn (value) {
  const begun = JSON.parse(sessionStorage.getItem('sign-in') ?? 'null')
  sessionStorage.removeItem('sign-in')
  return begun && begun.value === value ? begun.to : null
}

export function signOut () {
  user = null
  sessionStorage.clear()
  sessionEvents.dispatchEvent(new Event('change'))
}

/** Ends a session that the service no longer takes. */
export function expire () {
  signOut()
  sessionEvents.dispatchEvent(new Event('expired'))
}

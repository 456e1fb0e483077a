// The session of the user. The browser stores the token until the tab is closed.

/** @import { Schemas } from 'community-platform-client' */
/** @typedef {Schemas['CurrentUser']} User */

/** Emits `change` after a sign-in or sign-out. */
export const sessionEvents = new EventTarget()

/** @type {User | null} */
let user = null

/** @type {string | undefined} id of the user whose session has ended */
let former

export const token = () => sessionStorage.getItem('token')

/** Tells other tabs of this app about a sign-in, because a tab may be waiting for it. */
const signIns = new BroadcastChannel('sign-ins')

/** The last loaded user. */
export const currentUser = () => user

/**
 * Tells whether the user has one of these roles. Uses the role in the token, because the service also uses it.
 *
 * @param {...Schemas['Role']} roles
 */
export const hasRole = (...roles) => roles.some(role => role === sessionStorage.getItem('role'))

/** Tells whether the user's role has changed since they signed in. */
export const hasNewRole = () => user !== null && user.role !== sessionStorage.getItem('role')

/**
 * Calls `listener` with the tokens of sign-ins in other tabs. Returns a function that stops listening.
 *
 * @param {(token: string) => unknown} listener
 */
export function onOtherSignIns (listener) {
  signIns.onmessage = ({ data }) => listener(data)
  return () => { signIns.onmessage = null }
}

/** @param {string} value */
export const tellOthers = value => signIns.postMessage(value)

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
 * Starts a sign-in with the identity provider that returns to the path `to` of the app. Returns a value that must come
 * back with the token. Without it, an attacker could sign people in to the attacker's account (login CSRF).
 *
 * @param {string} to
 */
export function beginSignIn (to) {
  const value = crypto.randomUUID()
  sessionStorage.setItem('sign-in', JSON.stringify({ value, to }))
  return value
}

/**
 * Finishes the sign-in that this tab started. Returns its destination, or `null` if the value is wrong or this tab did
 * not start a sign-in.
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

/** Ends a session whose token the service rejects. */
export function expire () {
  former = user?.id ?? former
  signOut()
}

/** Tells whether the user differs from the user whose session ended in this tab. */
export const isSomebodyElse = () => former !== undefined && user?.id !== former

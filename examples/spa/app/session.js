// The session of the user. The token is stored for the lifetime of the tab.

/** @import { Schemas } from 'community-platform-client' */
/** @typedef {Schemas['CurrentUser']} User */

/** Emits `change` after a sign-in or sign-out. */
export const sessionEvents = new EventTarget()

/** @type {User | null} */
let user = null

/** @type {string | undefined} whose session has ended */
let former

export const token = () => sessionStorage.getItem('token')

/** Tells the other tabs of this app about a sign-in: one of them may wait for it. */
const signIns = new BroadcastChannel('sign-ins')

/** The user as last loaded. */
export const currentUser = () => user

/**
 * Whether a role lets them do this. The role is that of the token, because it is the one that the service goes by.
 *
 * @param {...Schemas['Role']} roles
 */
export const hasRole = (...roles) => roles.some(role => role === sessionStorage.getItem('role'))

/** Whether their role has changed since they signed in. */
export const hasNewRole = () => user !== null && user.role !== sessionStorage.getItem('role')

/**
 * Calls back with the tokens of sign-ins in other tabs. Returns a function that ends this.
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
 * Ends the sign-in that this tab has begun. Returns its destination; `null` if the value is not the expected one, or if
 * no sign-in was begun.
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

/** Whether the user is not the one whose session has ended in this tab. */
export const isSomebodyElse = () => former !== undefined && user?.id !== former

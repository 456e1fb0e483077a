// The session of the user. The browser keeps the token for all tabs until it expires. On a shared computer, it keeps
// the token for a single tab, until that tab is closed.

import { randomId } from './router.js'

/** @import { Schemas } from 'community-platform-client' */
/** @typedef {Schemas['CurrentUser']} User */

/** Emits `change` after a sign-in or sign-out, and `replaced` if a different tab has done so. */
export const sessionEvents = new EventTarget()

/** The storage for all tabs, and the storage of this tab; `null` if the browser blocks storage for this site. */
const forAllTabs = open(() => localStorage)
const forThisTab = open(() => sessionStorage)

/**
 * @template Part
 * @param {() => Part} part
 * @returns {Part | null}
 */
function open (part) {
  try {
    return part()
  } catch {
    return null
  }
}

/** Tells whether the browser can keep a token. */
export const canSignIn = forAllTabs !== null && forThisTab !== null

/** @type {User | null} */
let user = null

/** @type {string | undefined} id of the user whose session has ended */
let former

/** Tells other tabs of this app about a sign-in or sign-out. Some browsers block it together with storage. */
const otherTabs = open(() => new BroadcastChannel('session'))

/** @typedef {(token: string, shared: boolean) => void} SignInListener */

/** @type {SignInListener | null} */
let onSignIn = null

/** The token. In a tab on a shared computer, never the token of somebody who has signed in for all tabs. */
export const token = () => (isShared() ? forThisTab : forAllTabs)?.getItem('token') ?? null

/** Tells whether the session ends with this tab. Stays the same after the session has expired. */
export const isShared = () => forThisTab?.getItem('shared') === 'yes'

/** The last loaded user. */
export const currentUser = () => user

/** The claims of the token; `null` without a token. The service has verified them. */
function claims () {
  const [, payload] = token()?.split('.') ?? []
  if (!payload) return null
  try {
    const json = atob(payload.replace(/-/g, '+').replace(/_/g, '/'))
    return /** @type {{ userId: string, role: string }} */ (JSON.parse(json))
  } catch {
    return null
  }
}

/**
 * Tells whether the user has one of these roles. Uses the role in the token, because the service also uses it.
 *
 * @param {...Schemas['Role']} roles
 */
export const hasRole = (...roles) => roles.some(role => role === claims()?.role)

/**
 * Calls `listener` with the tokens of sign-ins in other tabs. Returns a function that stops listening.
 *
 * @param {SignInListener} listener
 */
export function onOtherSignIns (listener) {
  onSignIn = listener
  return () => { onSignIn = null }
}

/** @typedef {{ signedIn: string | null, shared?: boolean }} Change */

otherTabs?.addEventListener('message', (/** @type {MessageEvent<Change>} */ event) => {
  const { signedIn, shared = false } = event.data
  if (!signedIn) clear()
  else onSignIn?.(signedIn, shared)
  showPageAgain()
})
// The message of a sign-in may arrive before its token can be read.
addEventListener('storage', ({ key, newValue }) => {
  if (key === 'token' && newValue) showPageAgain()
})

/** Shows the page again if it is one of a different user, or of nobody although a user has signed in elsewhere. */
function showPageAgain () {
  const isReplaced = user ? user.id !== claims()?.userId : token() !== null && !onSignIn
  if (!isReplaced) return
  user = null
  sessionEvents.dispatchEvent(new Event('replaced'))
}

/**
 * @param {string} value
 * @param {boolean} [shared] keeps the token for this tab only
 */
export function keepToken (value, shared = false) {
  forThisTab?.removeItem('token')
  forThisTab?.setItem('shared', shared ? 'yes' : 'no')
  ;(shared ? forThisTab : forAllTabs)?.setItem('token', value)
  otherTabs?.postMessage({ signedIn: value, shared })
}

/** @param {User} value */
export function setUser (value) {
  user = value
  sessionEvents.dispatchEvent(new Event('change'))
}

/**
 * Starts a sign-in with the identity provider that returns to the path `to` of the app. Returns a value that must come
 * back with the token. Without it, an attacker could sign people in to the attacker's account (login CSRF).
 *
 * @param {string} to
 * @param {boolean} shared
 */
export function beginSignIn (to, shared) {
  const value = randomId()
  forThisTab?.setItem('sign-in', JSON.stringify({ value, to, shared }))
  return value
}

/**
 * Finishes the sign-in that this tab started. Returns its destination, or `null` if the value is wrong or this tab did
 * not start a sign-in.
 *
 * @param {string | null} value
 * @returns {{ to: string, shared: boolean } | null}
 */
export function endSignIn (value) {
  const begun = JSON.parse(forThisTab?.getItem('sign-in') ?? 'null')
  forThisTab?.removeItem('sign-in')
  return begun && begun.value === value ? begun : null
}

/**
 * Returns the page to sign in. Afterwards, `takeWish` tells the page at this path that the visitor pressed a button.
 *
 * @param {string} path
 */
export function signInToDo (path) {
  const wish = randomId()
  forThisTab?.setItem('wish', wish)
  return `/sign-in?${new URLSearchParams({ to: `${path}?wish=${wish}` })}`
}

/**
 * Tells once whether the user has pressed a button before they signed in. A link from elsewhere has no value that this
 * tab keeps.
 *
 * @param {URLSearchParams} query
 */
export function takeWish (query) {
  const wish = query.get('wish')
  if (!user || wish === null) return false
  const isOurs = wish === forThisTab?.getItem('wish')
  forThisTab?.removeItem('wish')
  return isOurs
}

/** Removes everything that the browser keeps about the session, and about texts that the user has typed. */
function clear () {
  forThisTab?.clear()
  forAllTabs?.removeItem('token')
}

/** Ends the session in all tabs. */
export function signOut () {
  user = null
  clear()
  otherTabs?.postMessage({ signedIn: null })
  sessionEvents.dispatchEvent(new Event('change'))
}

/** Ends a session whose token the service rejects. Texts that the user has typed stay. */
export function expire () {
  former = user?.id ?? former
  user = null
  ;(isShared() ? forThisTab : forAllTabs)?.removeItem('token')
  sessionEvents.dispatchEvent(new Event('change'))
}

/** Tells whether the user differs from the user whose session ended in this tab. */
export const isSomebodyElse = () => former !== undefined && user?.id !== former

/**
 * The key of a draft. It names the user, because a different person may sign in to this tab after the session expired.
 *
 * @param {string} form
 */
const draftKey = form => `draft ${user?.id ?? former} ${form}`

/**
 * The text that the user has typed into a form and not sent, by the names of its fields.
 *
 * @param {string} form
 * @returns {Record<string, string> | null}
 */
export const draftOf = form => JSON.parse(forThisTab?.getItem(draftKey(form)) ?? 'null')

/**
 * Keeps the text of a form until it is sent, or until the user signs out or closes the tab.
 *
 * @param {string} form
 * @param {Record<string, string> | null} values
 */
export function keepDraft (form, values) {
  try {
    if (values) forThisTab?.setItem(draftKey(form), JSON.stringify(values))
    else forThisTab?.removeItem(draftKey(form))
  } catch {
    // The storage is full, so the text is kept only by the page.
  }
}

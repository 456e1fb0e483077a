// Calls the service with its typed client, and turns errors into messages for users.
import { createClient } from 'community-platform-client'

import { API } from './config.js'
import { expire, keepToken, setUser, token } from './session.js'

/** @import { Schemas } from 'community-platform-client' */

export const client = createClient({ baseUrl: API, token })

/** An error as a message for the user; `fields` has the messages for the fields of a form, by name. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {number} [status] of the response; 0 without one
   * @param {Record<string, string>} [fields]
   */
  constructor (message, status = 0, fields = {}) {
    super(message)
    this.status = status
    this.fields = fields
  }
}

/** The error of a request whose token the service does not accept, or that has none. */
export class SessionExpired extends ApiError {
  constructor () {
    super('Your session has expired. Please sign in again.', 401)
  }
}

/** The messages of the 401s that are about the token: a wrong password is a 401, too, and the session goes on. */
const NOT_SIGNED_IN = ['Access token required', 'Invalid or expired token', 'Unauthorized']

/**
 * Waits for a response, and returns its body. Throws an ApiError.
 *
 * @template Data
 * @param {Promise<{ data?: Data, error?: unknown, response: Response }>} request
 * @returns {Promise<NonNullable<Data>>}
 */
export async function call (request) {
  const sent = token()
  const { data, error, response } = await request.catch(() => {
    throw new ApiError('The service cannot be reached. Check your connection, then try again.')
  })
  if (response.ok) return /** @type {NonNullable<Data>} */ (data)
  const problem = toApiError(error, response.status)
  if (response.status !== 401 || !NOT_SIGNED_IN.includes(problem.message)) throw problem
  // The user may have signed in again while this request ran.
  if (sent === token()) expire()
  throw new SessionExpired()
}

/** @type {() => Promise<boolean>} */
let signInAgain = async () => false

/**
 * Sets what asks a user to sign in again, and resolves to whether they did.
 *
 * @param {typeof signInAgain} ask
 */
export function whenExpired (ask) {
  signInAgain = ask
}

/**
 * Runs something that the user does. If their session has ended, they are asked to sign in again, and it runs once
 * more: what they have written stays on the page.
 *
 * @template Result
 * @param {() => Promise<Result>} action
 */
export async function inSession (action) {
  try {
    return await action()
  } catch (error) {
    if (!(error instanceof SessionExpired) || !await signInAgain()) throw error
    return await action()
  }
}

/**
 * @param {unknown} body
 * @param {number} status
 */
function toApiError (body, status) {
  const { message, errors } = /** @type {{ message?: string, errors?: Schemas['Issue'][] }} */ (body || {})
  if (!errors) return new ApiError(message || `The service had a problem (${status}). Try again later.`, status)
  const fields = errors.map(({ path, message }) => [path, inPlainWords(message)])
  return new ApiError('Please look at the marked fields.', status, Object.fromEntries(fields))
}

/** @param {string} issue */
function inPlainWords (issue) {
  return issue
    .replace('must NOT have fewer than 1 characters', 'must not be empty')
    .replace(/must NOT have fewer than (\d+) characters/, 'must have at least $1 characters')
    .replace(/must be >= (\d+)/, 'must be $1 or more')
    .replace(/must be <= (\d+)/, 'must be $1 or less')
}

/**
 * Stores a token, and loads its user.
 *
 * @param {string} value
 */
export async function signInWith (value) {
  keepToken(value)
  await loadUser()
}

/** Loads the user who is signed in. */
export async function loadUser () {
  const { user } = await call(client.GET('/auth/me'))
  setUser(user)
}

/**
 * Downloads a file from the service under this name.
 *
 * @param {Parameters<typeof call<unknown>>[0]} request whose response is parsed as a blob
 * @param {string} name
 */
export async function download (request, name) {
  const href = URL.createObjectURL(/** @type {Blob} */ (await call(request)))
  Object.assign(document.createElement('a'), { href, download: name }).click()
  URL.revokeObjectURL(href)
}

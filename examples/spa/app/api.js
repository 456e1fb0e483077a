// Calls the service with its typed client, and turns errors into messages for users.
import { createClient } from 'community-platform-client'

import { API } from './config.js'
import { expire, hasRole, isShared, keepToken, setUser, token } from './session.js'

/** @import { Schemas } from 'community-platform-client' */

/** Longest time until a response begins, in milliseconds. A connection can go silent without an error. */
const SILENCE_MS = 30_000

/** @type {Set<Promise<Response>>} */
const writes = new Set()

/** Largest difference that a slow response and the whole seconds of `Date` explain, in milliseconds. */
const INACCURACY_MS = 5000

/** How far the clock of the service is ahead of the clock of this device, in milliseconds. */
let ahead = 0

/** The time in milliseconds. If the clock of the device is wrong, the time of the service. */
export const now = () => Date.now() + ahead

/** @param {Response} response */
function readClock ({ headers }) {
  const difference = Date.parse(headers.get('date') ?? '') - Date.now()
  if (!Number.isNaN(difference)) ahead = Math.abs(difference) > INACCURACY_MS ? difference : 0
}

export const client = createClient({
  baseUrl: API,
  token,
  fetch (request) {
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(), SILENCE_MS)
    const response = fetch(request, { signal: silence.signal }).finally(() => clearTimeout(timer))
    if (request.method !== 'GET') {
      writes.add(response)
      response.catch(() => {}).finally(() => writes.delete(response))
    }
    response.then(readClock, () => {})
    return response
  },
})

/**
 * A new `Idempotency-Key`. `crypto.randomUUID` would need HTTPS, which a phone in the same network does not have.
 */
export const newKey = () => [...crypto.getRandomValues(new Uint32Array(4))].map(part => part.toString(36)).join('-')

/** Waits for the writes that run, so that a page which is loaded next shows them. Uploads change no page. */
export const written = () => Promise.allSettled([...writes])

/** An error with a message for the user. `fields` maps the names of form fields to their messages. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {number} [status] status of the response; 0 without a response
   * @param {Record<string, string>} [fields]
   */
  constructor (message, status = 0, fields = {}) {
    super(message)
    this.status = status
    this.fields = fields
  }
}

/** The service refused a request because its token is missing, invalid or expired. */
export class SessionExpired extends ApiError {
  constructor () {
    super('Your session has expired. Please sign in again.', 401)
  }
}

/** Messages of 401s about the token. A wrong password is also a 401, but does not end the session. */
const NOT_SIGNED_IN = ['Access token required', 'Invalid or expired token', 'Unauthorized']

/**
 * Waits for a response and returns its body. Throws an ApiError.
 *
 * @template Data
 * @param {Promise<{ data?: Data, error?: unknown, response: Response }>} request
 * @returns {Promise<NonNullable<Data>>}
 */
export async function call (request) {
  const sent = token()
  const { data, error, response } = await request.catch(() => {
    throw new ApiError("Can't reach the service. Check your connection, then try again.")
  })
  if (response.ok) return /** @type {NonNullable<Data>} */ (data)
  const problem = toApiError(error, response)
  if (response.status !== 401 || !NOT_SIGNED_IN.includes(problem.message)) throw problem
  // The user may have signed in again during this request.
  if (sent === token()) expire()
  throw new SessionExpired()
}

/** @type {() => Promise<boolean>} */
let signInAgain = async () => false

/**
 * Sets the function that asks a user to sign in again. It resolves to `true` if they did.
 *
 * @param {typeof signInAgain} ask
 */
export function whenExpired (ask) {
  signInAgain = ask
}

/**
 * Runs an action of the user. If their session has expired, asks them to sign in again and retries the action, so that
 * their input stays on the page.
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
 * @param {Response} response
 */
function toApiError (body, { status, headers }) {
  const { message, errors } = /** @type {{ message?: string, errors?: Schemas['Issue'][] }} */ (body || {})
  if (!errors) {
    const words = message || `The service reported an error (${status})`
    return new ApiError(message && status !== 429 ? message : `${words}. ${tryAgain(headers)}`, status)
  }
  const fields = errors.map(({ path, message }) => [path, inPlainWords(message)])
  return new ApiError('Please correct the marked fields.', status, Object.fromEntries(fields))
}

/**
 * Tells when to try again, by the header Retry-After.
 *
 * @param {Headers} headers
 */
function tryAgain (headers) {
  const seconds = Number(headers.get('retry-after'))
  if (!seconds) return 'Try again later.'
  const [size, unit] = seconds < 60 ? [1, 'second'] : seconds < 3600 ? [60, 'minute'] : [3600, 'hour']
  const number = Math.ceil(seconds / size)
  return `Try again in ${number} ${unit}${number === 1 ? '' : 's'}.`
}

/** @param {string} issue */
function inPlainWords (issue) {
  return issue
    .replace(/^is required$/, 'must not be empty')
    .replace('must NOT have fewer than 1 characters', 'must not be empty')
    .replace(/must NOT have fewer than (\d+) characters/, 'must have at least $1 characters')
    .replace(/must NOT have fewer than (\d+) items/, 'must be $1 or more')
    .replace(/must NOT have more than (\d+) items/, 'must be $1 or less')
    .replace(/must be >= (\d+)/, 'must be $1 or more')
    .replace(/must be <= (\d+)/, 'must be $1 or less')
    .replace('must be before closesAt', 'must be before registration closes')
}

/**
 * Stores a token and loads its user.
 *
 * @param {string} value
 * @param {boolean} [shared] keeps the token for this tab only, by default as before
 */
export async function signInWith (value, shared = isShared()) {
  keepToken(value, shared)
  await loadUser()
}

/** Number of times that the user was loaded, so that only the last response counts. */
let loads = 0

/** Loads the signed-in user, and a token with their role if it has changed since the sign-in. */
export async function loadUser () {
  const load = ++loads
  const sent = token()
  const { user } = await call(client.GET('/auth/me'))
  // The user may have signed out during this request, or the next one.
  const isLeft = () => load !== loads || sent !== token()
  if (isLeft()) return
  const renewed = hasRole(user.role) ? null : await call(client.POST('/me/token'))
  if (isLeft()) return
  if (renewed) keepToken(renewed.token, isShared())
  setUser(user)
}

/**
 * Uploads a picture. By an XMLHttpRequest, which tells its progress, as `fetch` does not.
 *
 * @param {File} file
 * @param {(part: number) => void} progress gets the part that is sent, from 0 to 1
 * @param {AbortSignal} signal cancels the upload
 * @param {string} key so that the same upload, sent again after a lost response, is stored once
 * @returns {Promise<{ picture: Schemas['Picture'] }>}
 */
export function sendPicture (file, progress, signal, key) {
  const upload = new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', `${API}/me/pictures`)
    request.setRequestHeader('authorization', `Bearer ${token()}`)
    request.setRequestHeader('idempotency-key', key)
    request.responseType = 'json'
    request.upload.onprogress = ({ loaded, total }) => progress(loaded / total)
    request.onerror = reject
    request.onabort = reject
    signal.addEventListener('abort', () => request.abort())
    request.onload = () => {
      const isDone = request.status === 201
      resolve({
        data: isDone ? request.response : undefined,
        error: request.response,
        response: new Response(null, {
          status: request.status,
          headers: { 'retry-after': request.getResponseHeader('retry-after') ?? '' },
        }),
      })
    }
    request.send(file)
  })
  return call(/** @type {Parameters<typeof call<{ picture: Schemas['Picture'] }>>[0]} */ (upload))
}

/**
 * Downloads a file from the service under this name.
 *
 * @param {Parameters<typeof call<unknown>>[0]} request a request with `parseAs: 'blob'`
 * @param {string} name
 */
export async function download (request, name) {
  save(/** @type {Blob} */ (await call(request)), name)
}

/**
 * Saves a file under this name.
 *
 * @param {Blob} file
 * @param {string} name
 */
export function save (file, name) {
  const href = URL.createObjectURL(file)
  Object.assign(document.createElement('a'), { href, download: name }).click()
  URL.revokeObjectURL(href)
}

// Maps paths to pages and handles navigation.

/**
 * The input of a page.
 *
 * @typedef {object} Visit
 * @property {string[]} parts the path segments that match a `*` in the pattern
 * @property {URLSearchParams} query
 */

/** @typedef {(visit: Visit) => Node[] | Promise<Node[]>} Page */

/**
 * How a page is shown. `place` is the position to scroll to; without it, the position stays.
 *
 * @typedef {{ place?: number }} Options
 */

/** @type {(options: Options) => Promise<void>} */
let show = async () => {}

/** @type {Map<string, number>} the positions of visited pages, by the key of their entry in the history */
const places = new Map()

/** A random name. Without HTTPS, for example on a phone in the same network, browsers have no `randomUUID`. */
export const randomId = () => crypto.getRandomValues(new Uint32Array(4)).join('-')

/** @type {string} */
let key = history.state?.key ?? randomId()

/** Number of navigations, to know the last one. */
let navigations = 0

/** Whether the page of the current entry is shown, so that the position is one of this page. */
let isShown = false

/** @param {number} place */
async function arrive (place) {
  const navigation = ++navigations
  isShown = false
  await show({ place })
  if (navigation === navigations) isShown = true
}

/** Keeps the position in the page that the user leaves. */
function keepPlace () {
  if (isShown) places.set(key, scrollY)
}

/** Writes the position into the entry in the history, so that it survives a reload of the document. */
const writePlace = () => history.replaceState({ key, place: places.get(key) }, '')

/**
 * Calls `render` when the URL changes. Links within the app do not reload the document. Back and Forward return to the
 * position in the page.
 *
 * @param {typeof show} render
 */
export async function startRouter (render) {
  show = render
  // The browser would restore the position before the page is loaded.
  history.scrollRestoration = 'manual'
  const { place = 0 } = history.state ?? {}
  history.replaceState({ key }, '')
  addEventListener('popstate', ({ state }) => {
    keepPlace()
    key = state?.key ?? randomId()
    arrive(places.get(key) ?? state?.place ?? 0)
  })
  // Before a reload. In `pagehide`, browsers ignore changes of the history.
  addEventListener('beforeunload', () => {
    keepPlace()
    writePlace()
  })
  document.addEventListener('click', event => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (!link || link.origin !== location.origin || link.target) return
    // With a modifier key, the browser opens the link in a new tab or window, or downloads it.
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    // A link to an anchor moves the focus without a navigation.
    if (link.hash) /** @type {HTMLElement | null} */ (document.querySelector(link.hash))?.focus()
    else go(link.pathname + link.search)
  })
  await arrive(place)
}

/**
 * Navigates to a page of the app.
 *
 * @param {string} address
 * @param {{ replace?: boolean }} [options]
 */
export async function go (address, { replace = false } = {}) {
  // As for a link without this app, so that Back leaves the page after a double click.
  if (replace || address === here()) {
    history.replaceState({ key }, '', address)
  } else {
    keepPlace()
    writePlace()
    key = randomId()
    history.pushState({ key }, '', address)
  }
  await arrive(0)
}

/**
 * Replaces the address of the current page without loading it.
 *
 * @param {string} address
 */
export const setAddress = address => history.replaceState({ key }, '', address)

/** Reloads the current page. */
export const refresh = () => show({})

/**
 * The number of a page in its address; 1 if it is missing or wrong.
 *
 * @param {URLSearchParams} query
 */
export function pageOf (query) {
  const page = Number(query.get('page'))
  return Number.isInteger(page) && page > 0 && page < 1e6 ? page : 1
}

/** The path and query of the current page. */
export const here = () => location.pathname + location.search

/**
 * Returns the path of a URL within the app, or else the home page, because links may come from other sites.
 *
 * @param {string | null} address
 */
export function within (address) {
  if (!address || !URL.canParse(address, location.origin)) return '/'
  const { origin, pathname, search } = new URL(address, location.origin)
  // Browsers read a path that begins with two slashes as the name of a different site.
  return origin === location.origin && !pathname.startsWith('//') ? pathname + search : '/'
}

/**
 * Returns the path segments that match a `*` in the pattern, or `null` if the path does not match.
 *
 * @param {string} pattern
 * @param {string} path
 */
export function match (pattern, path) {
  const [wanted, given] = [pattern.split('/'), path.replace(/(.)\/$/, '$1').split('/')]
  if (wanted.length !== given.length || wanted.some((part, place) => part !== '*' && part !== given[place])) return null
  try {
    return given.filter((_, place) => wanted[place] === '*').map(decodeURIComponent)
  } catch {
    // `%FF`, for example, is not a text.
    return null
  }
}

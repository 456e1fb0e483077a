// Maps paths to pages and handles navigation.

/**
 * The input of a page.
 *
 * @typedef {object} Visit
 * @property {string[]} parts the path segments that match a `*` in the pattern
 * @property {URLSearchParams} query
 */

/** @typedef {(visit: Visit) => Node[] | Promise<Node[]>} Page */

/** @type {(options: { keepPlace: boolean }) => Promise<void>} */
let show = async () => {}

/**
 * Calls `render` when the URL changes. Links within the app do not reload the document.
 *
 * @param {typeof show} render
 */
export async function startRouter (render) {
  show = render
  addEventListener('popstate', () => show({ keepPlace: false }))
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
  await show({ keepPlace: false })
}

/**
 * Navigates to a page of the app.
 *
 * @param {string} address
 * @param {{ replace?: boolean }} [options]
 */
export async function go (address, { replace = false } = {}) {
  if (replace) history.replaceState(null, '', address)
  else history.pushState(null, '', address)
  await show({ keepPlace: false })
}

/** Reloads the current page. */
export const refresh = () => show({ keepPlace: true })

/** The path and query of the current page. */
export const here = () => location.pathname + location.search

/**
 * Returns the path of a URL within the app, or else the home page, because links may come from other sites.
 *
 * @param {string | null} address
 */
export function within (address) {
  const { origin, pathname, search } = new URL(address || '/', location.origin)
  return origin === location.origin ? pathname + search : '/'
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
  return given.filter((_, place) => wanted[place] === '*').map(decodeURIComponent)
}

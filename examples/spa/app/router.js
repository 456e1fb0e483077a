// Maps addresses to pages, and handles navigation.

/**
 * The input of a page.
 *
 * @typedef {object} Visit
 * @property {string[]} parts the path segments that match a `*` of the pattern
 * @property {URLSearchParams} query
 */

/** @typedef {(visit: Visit) => Node[] | Promise<Node[]>} Page */

/** @type {(options: { keepPlace: boolean }) => Promise<void>} */
let show = async () => {}

/**
 * Calls `render` when the address changes. Links within the app do not reload the document.
 *
 * @param {typeof show} render
 */
export async function startRouter (render) {
  show = render
  addEventListener('popstate', () => show({ keepPlace: false }))
  document.addEventListener('click', event => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (!link || link.origin !== location.origin || link.target) return
    // With a modifier key, the link opens elsewhere or is downloaded.
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    // A link to an anchor moves the focus there, without a navigation.
    if (link.hash) /** @type {HTMLElement | null} */ (document.querySelector(link.hash))?.focus()
    else go(link.pathname + link.search)
  })
  await show({ keepPlace: false })
}

/**
 * Navigates to another page of the app.
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

/** The current address within the app. */
export const here = () => location.pathname + location.search

/**
 * The address if it is within the app, else the home page: links may come from others.
 *
 * @param {string | null} address
 */
export function within (address) {
  const { origin, pathname, search } = new URL(address || '/', location.origin)
  return origin === location.origin ? pathname + search : '/'
}

/**
 * The path segments that match a `*` of the pattern; `null` if the path does not match.
 *
 * @param {string} pattern
 * @param {string} path
 */
export function match (pattern, path) {
  const [wanted, given] = [pattern.split('/'), path.replace(/(.)\/$/, '$1').split('/')]
  if (wanted.length !== given.length || wanted.some((part, place) => part !== '*' && part !== given[place])) return null
  return given.filter((_, place) => wanted[place] === '*').map(decodeURIComponent)
}

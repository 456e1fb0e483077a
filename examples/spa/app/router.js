// Which page an address shows, and what happens when one moves between them.

/**
 * What a page is made of.
 *
 * @typedef {object} Visit
 * @property {string[]} parts what stands in the path where its pattern has a `*`
 * @property {URLSearchParams} query
 */

/** @typedef {(visit: Visit) => Node[] | Promise<Node[]>} Page */

/** @type {(options: { keepPlace: boolean }) => Promise<void>} */
let show = async () => {}

/**
 * Has `render` called whenever the address changes. Links within the app load no document.
 *
 * @param {typeof show} render
 */
export async function startRouter (render) {
  show = render
  addEventListener('popstate', () => show({ keepPlace: false }))
  document.addEventListener('click', event => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (!link || link.origin !== location.origin || link.target) return
    // With a key held it opens elsewhere, or is saved.
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    // A link to a part of the page moves the focus there, and is no visit of another page.
    if (link.hash) /** @type {HTMLElement | null} */ (document.querySelector(link.hash))?.focus()
    else go(link.pathname + link.search)
  })
  await show({ keepPlace: false })
}

/**
 * Goes to another page of the app.
 *
 * @param {string} address
 * @param {{ replace?: boolean }} [options]
 */
export async function go (address, { replace = false } = {}) {
  if (replace) history.replaceState(null, '', address)
  else history.pushState(null, '', address)
  await show({ keepPlace: false })
}

/** Shows this page again, as it now is. */
export const refresh = () => show({ keepPlace: true })

/** Where a person is, as an address of this app. */
export const here = () => location.pathname + location.search

/**
 * An address of this app, whatever somebody has written into a link.
 *
 * @param {string | null} address
 */
export function within (address) {
  const { origin, pathname, search } = new URL(address || '/', location.origin)
  return origin === location.origin ? pathname + search : '/'
}

/**
 * The parts of a path that a pattern has a `*` for; `null` when it is another path.
 *
 * @param {string} pattern
 * @param {string} path
 */
export function match (pattern, path) {
  const [wanted, given] = [pattern.split('/'), path.replace(/(.)\/$/, '$1').split('/')]
  if (wanted.length !== given.length || wanted.some((part, place) => part !== '*' && part !== given[place])) return null
  return given.filter((_, place) => wanted[place] === '*').map(decodeURIComponent)
}

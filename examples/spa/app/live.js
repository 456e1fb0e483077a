// Follows public lists while a person looks at a page.
import { client } from './api.js'

/** @import { PublicList } from 'community-platform-client' */

/** The lists of the page, and what updates them. */
let watched = /** @type {{ lists: PublicList[], update: () => Promise<unknown> } | null} */ (null)

let stop = () => {}

/**
 * Calls `update` when one of these lists changes, until the user leaves the page. `update` must not move anything
 * under a finger: it changes numbers, and offers the rest. A page has a single stream, and none while its tab is
 * hidden.
 *
 * @param {PublicList[]} lists
 * @param {() => Promise<unknown>} update
 */
export function follow (lists, update) {
  watched = { lists, update }
  open()
}

/** Stops following, because the user leaves the page. */
export function unfollow () {
  watched = null
  stop()
}

function open () {
  stop()
  if (!watched || document.hidden) return
  const { lists, update } = watched
  /** @type {Promise<unknown> | null} */
  let next = null
  // Changes that arrive at once need a single update. The next update begins after a change, so it sees the change.
  stop = client.live(lists, () => {
    next ??= new Promise(resolve => setTimeout(resolve, 100)).then(() => {
      next = null
      // The user has moved on, or the service will tell the next change.
      if (watched?.update === update) return update().catch(() => {})
    })
  })
}

document.addEventListener('visibilitychange', open)

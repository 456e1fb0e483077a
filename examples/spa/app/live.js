// Follows public lists while a person looks at a page.
import { ApiError, client } from './api.js'
import { changeHint } from './parts.js'

/** @import { PublicList } from 'community-platform-client' */

/** Fields of items that change in place, because new numbers move nothing. */
const NUMBERS = [
  'registrationCount', 'comingCount', 'seatsLeft', 'waitingCount', 'likeCount', 'position', 'memberCount',
]

/** Time before an update, and before it is tried again after an error, in milliseconds. */
const UPDATE_MS = 100
const RETRY_MS = 3000

/** @typedef {{ lists: PublicList[], update: () => Promise<unknown> }} Watched the lists of a page, and their update */

/** What pages follow, by their hint. @type {WeakMap<Element, Watched>} */
const followed = new WeakMap()

/** What the page that is shown follows. @type {Watched | null} */
let watched = null

let stop = () => {}

/**
 * Calls `update` when one of these lists changes, while the page is shown. `update` shows new numbers, and resolves to
 * whether these are all changes. Others would move things under a finger, so the page offers them in a hint, which this
 * function returns. A page has a single stream, and none while its tab is hidden.
 *
 * @param {PublicList[]} lists
 * @param {() => Promise<boolean>} update
 */
export function follow (lists, update) {
  const hint = changeHint()
  followed.set(hint.element, {
    lists,
    async update () {
      if (!await update().catch(isDeleted)) hint.show()
    },
  })
  return hint.element
}

/**
 * Begins to follow the lists of the page that is shown. A page that arrives late is never shown, and must not end this.
 *
 * @param {Element} main
 */
export function followShown (main) {
  const hint = main.querySelector('.changed')
  watched = (hint && followed.get(hint)) ?? null
  open()
}

/**
 * An item that is deleted has changed. Throws any other error.
 *
 * @param {unknown} error
 */
function isDeleted (error) {
  if (error instanceof ApiError && error.status === 404) return false
  throw error
}

/**
 * Tells whether two versions of data differ in numbers only.
 *
 * @param {unknown} before
 * @param {unknown} now
 */
export function isSame (before, now) {
  const [one, other] = [before, now].map(data =>
    JSON.stringify(data, (key, value) => NUMBERS.includes(key) ? undefined : value))
  return one === other
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
  let isWaiting = false
  let last = /** @type {Promise<unknown>} */ (Promise.resolve())
  stop = client.live(lists, () => updateAfter(UPDATE_MS))

  /**
   * Changes that arrive at once need a single update. The next update begins after a change, so it sees the change.
   *
   * @param {number} milliseconds
   */
  async function updateAfter (milliseconds) {
    if (isWaiting) return
    isWaiting = true
    await new Promise(resolve => setTimeout(resolve, milliseconds))
    isWaiting = false
    // The user may have moved on. A tab that is shown again opens a new stream.
    if (watched?.update !== update || document.hidden) return
    // One after the other, because an older response must not replace a newer one. An update fails, for example, while
    // a phone changes networks.
    last = last.then(update).catch(() => updateAfter(RETRY_MS))
  }
}

document.addEventListener('visibilitychange', open)

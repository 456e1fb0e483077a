// Helpers that pages share.
import { ApiError, inSession, now } from './api.js'
import { API, TIME_ZONE } from './config.js'
import { h, isWeb, svg } from './dom.js'
import { refresh } from './router.js'

/** @import { Child } from './dom.js' */

const DAY = new Intl.DateTimeFormat(undefined, { day: 'numeric' })
const MONTH = new Intl.DateTimeFormat(undefined, { month: 'short' })
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: 'long' })
/** @type {Intl.DateTimeFormatOptions} */
const MINUTE = { hour: '2-digit', minute: '2-digit' }
/** @type {Intl.DateTimeFormatOptions} */
const FULL = { weekday: 'short', day: 'numeric', month: 'long', year: 'numeric', ...MINUTE }

/** @type {Record<string, string>} */
export const ROLES = { STUDENT: 'Student', CLUB_HEAD: 'Club head', ADMIN: 'Admin' }

/** @type {Record<string, string>} */
export const STATUSES = { DRAFT: 'Draft', PUBLISHED: 'Published', ARCHIVED: 'Archived' }

/** Hint for a URL that the service refuses to remove. */
export const REPLACED = 'You can replace the picture, but not remove it.'

/** @param {{ firstName: string, lastName: string }} person */
export const nameOf = ({ firstName, lastName }) => `${firstName} ${lastName}`.trim()

/**
 * Formats a number with its noun, singular or plural.
 *
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export const count = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`

/** @param {string} date */
export const isPast = date => Date.parse(date) < now()

/** Duration of an event without an end, in milliseconds. The service uses the same. */
const DURATION = 2 * 3_600_000

/**
 * Tells whether an event has ended.
 *
 * @param {{ date: string, endsAt?: string | null }} event
 */
export const isOver = ({ date, endsAt }) => isPast(endsAt ?? new Date(Date.parse(date) + DURATION).toISOString())

/** @param {string} date */
export const onDate = date => h('time', { datetime: date }, DATE.format(new Date(date)))

/** @param {string} date */
export const atTime = date => timeIn(date, FULL)

const [FULL_HERE, FULL_THERE] = [undefined, TIME_ZONE].map(timeZone =>
  new Intl.DateTimeFormat(undefined, { ...FULL, timeZone }))

/**
 * A time in the time zone of the browser. If the clocks of the community differ at that time, names the zone.
 *
 * @param {string} date
 * @param {Intl.DateTimeFormatOptions} format
 */
function timeIn (date, format) {
  const time = new Date(date)
  const isElsewhere = FULL_HERE?.format(time) !== FULL_THERE?.format(time)
  const options = { ...format, ...isElsewhere && { timeZoneName: /** @type {const} */ ('short') } }
  return h('time', { datetime: date }, new Intl.DateTimeFormat(undefined, options).format(time))
}

/**
 * The end of an event: the time if it is on the same day, else the date.
 *
 * @param {string} date
 * @param {string | null} endsAt
 */
export function untilTime (date, endsAt) {
  if (!endsAt) return null
  const [start, end] = [new Date(date), new Date(endsAt)]
  return h('span', {}, 'until ', timeIn(endsAt, start.toDateString() === end.toDateString() ? MINUTE : FULL))
}

/** A hint above the page that a list has changed, with a button that shows it, so that nothing moves under a finger. */
export function changeHint () {
  const element = h('p', { class: 'banner changed', role: 'status', hidden: true })
  return {
    element,
    show () {
      if (!element.hidden) return
      element.replaceChildren('This page has changed. ', h('button', { type: 'button', onclick: refresh }, 'Show'))
      element.hidden = false
    },
  }
}

/**
 * Tells when the user will be reminded of an event with this date; `null` without a reminder.
 *
 * @param {string} date
 * @param {number | null} hours hours before the event; `null` without reminders
 */
export function reminder (date, hours) {
  if (hours === null) return null
  const time = new Date(Date.parse(date) - hours * 3_600_000).toISOString()
  return isPast(time) ? null : h('span', {}, 'you will be reminded on ', atTime(time))
}

/**
 * Draws a calendar leaf. It is hidden from screen readers because the text also contains the date.
 *
 * @param {string} date
 */
export const calendarLeaf = date => h('span', { class: 'leaf', 'aria-hidden': 'true' },
  h('span', {}, MONTH.format(new Date(date))), h('b', {}, DAY.format(new Date(date))))

/**
 * A line of a list of events, which leads to the page of the event.
 *
 * @param {{ id: string, title: string, date: string, club: { name: string }, endsAt?: string | null,
 *   place?: string | null, comingCount?: number }} event
 * @param {...Child} more
 */
export const eventLine = ({ id, title, date, club, endsAt = null, place, comingCount }, ...more) =>
  inColour(club.name, h('li', {},
    calendarLeaf(date),
    h('div', {},
      h('h3', {}, h('a', { href: `/events/${id}` }, title)),
      h('p', { class: 'meta' }, h('span', { class: 'club' }, club.name), atTime(date), untilTime(date, endsAt),
        place && h('span', {}, place))),
    comingCount !== undefined && h('p', { class: 'meta going' }, goingOf(comingCount)),
    ...more))

/** @param {number} number */
export const goingOf = number => `${number} registered`

/** @param {string} status */
export const statusBadge = status => h('span', { class: `badge ${status.toLowerCase()}` }, STATUSES[status])

/**
 * Creates the header of a page. Its heading gets the focus when the page opens.
 *
 * @param {string} title
 * @param {...Child} more
 */
export const heading = (title, ...more) => h('header', { class: 'top' }, h('h1', { tabindex: '-1' }, title), ...more)

/** @param {string} text */
export const lead = text => h('p', { class: 'lead' }, text)

/** @param {...Child} words */
export const nothing = (...words) => h('p', { class: 'nothing' }, ...words)

/**
 * Hashes a text.
 *
 * @param {string} text
 */
function hash (text) {
  let value = 2166136261
  for (const character of text) value = Math.imul(value ^ /** @type {number} */ (character.codePointAt(0)), 16777619)
  // Mixes the bits, so that similar names get different colours.
  value = Math.imul(value ^ value >>> 15, 0x85ebca6b)
  return (value ^ value >>> 13) >>> 0
}

const TILES = ['M0 0h10v10z', 'M0 0a10 10 0 0 1 10 10h-10z', 'M10 0a10 10 0 0 1-10 10v-10z', 'M0 10a5 5 0 0 1 10 0z',
  'M5 1a4 4 0 0 1 0 8a4 4 0 0 1 0-8z', 'M0 0h10v5h-10z', 'M10 10a10 10 0 0 1-10-10h10z']

/**
 * Shows the picture of an item. Without one, or if it does not load, shows tiles in the colour of the club, generated
 * from the title.
 *
 * @param {string} title
 * @param {string | null} imageUrl
 * @param {{ of?: string, wide?: boolean, large?: boolean }} [options]
 */
export function cover (title, imageUrl, { of = title, wide = false, large = false } = {}) {
  const columns = wide ? 8 : 4
  const rows = wide ? 3 : 4
  const drawing = svg('svg', { viewBox: `0 0 ${columns * 10} ${rows * 10}`, preserveAspectRatio: 'xMidYMid slice' })
  let state = hash(title)
  for (let tile = 0; tile < columns * rows; tile++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    const d = TILES[(state >>> 8) % TILES.length]
    const at = `translate(${tile % columns * 10} ${Math.floor(tile / columns) * 10})`
    drawing.append(svg('path', { d, transform: at, class: `tone${(state >>> 16) % 4}` }))
  }
  const shape = wide ? 'cover wide' : 'cover'
  const address = large ? imageUrl : smallPicture(imageUrl)
  return inColour(of, h('div', { class: shape, 'aria-hidden': 'true' }, drawing, picture(address)))
}

/**
 * Shows the photo of a person. Without one, or if it does not load, shows their initials.
 *
 * @param {string} name
 * @param {string | null} [imageUrl]
 */
export function portrait (name, imageUrl) {
  const words = name.split(/\s+/)
  const initials = (words.length > 1 ? [words[0], words.at(-1)] : words).map(firstLetter).join('')
  const photo = picture(smallPicture(imageUrl))
  return inColour(name, h('span', { class: 'portrait', 'aria-hidden': 'true' }, initials, photo))
}

const LETTERS = new Intl.Segmenter()

/**
 * Returns the first letter of a word. In some scripts, a letter consists of several code points.
 *
 * @param {string | undefined} word
 */
const firstLetter = (word = '') => [...LETTERS.segment(word)][0]?.segment

/**
 * Sets the colour of an element from a name.
 *
 * @template {HTMLElement} E
 * @param {string} name
 * @param {E} element
 */
export function inColour (name, element) {
  element.style.setProperty('--hue', String(hash(name) % 24 * 15))
  return element
}

/**
 * Returns the URL of the small version of a picture that was uploaded to the service. Returns other URLs unchanged.
 *
 * @template {string | null | undefined} Address
 * @param {Address} address
 * @returns {Address | string}
 */
export const smallPicture = address => address?.startsWith(`${API}/pictures/`) ? `${address}?width=480` : address

/** @param {string | null | undefined} address */
function picture (address) {
  // The demo data contains drawings as data URLs. An image never runs scripts.
  if (!address || !(isWeb(address) || address.startsWith('data:image/'))) return null
  return h('img', { src: address, alt: '', loading: 'lazy', onerror: ({ target }) => target.remove() })
}

const notices = /** @type {HTMLElement} */ (document.querySelector('#notices'))

/**
 * Shows a notification, which screen readers announce. An error stays until the user closes it or leaves the page.
 *
 * @param {string} message
 * @param {'done' | 'wrong'} [kind]
 */
export function notify (message, kind = 'done') {
  const notice = h('div', { class: `notice ${kind}` }, h('p', {}, message),
    h('button', { type: 'button', class: 'plain', 'aria-label': 'Close this message', onclick: clearNotice }, '×'))
  notices.replaceChildren(notice)
  if (kind === 'wrong') return
  setTimeout(() => {
    if (notice.isConnected) clearNotice()
  }, 8000)
}

/** Moves the notifications into the dialog that is open, because everything outside of it is inert. */
const placeNotices = () => (([...document.querySelectorAll('dialog')].at(-1)) ?? document.body).append(notices)

/** Removes the notification. */
export const clearNotice = () => notices.replaceChildren()

/**
 * The message of an error for the user.
 *
 * @param {unknown} error
 */
export function wordsOf (error) {
  if (error instanceof ApiError) return error.message
  console.error(error)
  return 'Something in this app went wrong. Reload the page, then try again.'
}

/**
 * Creates a button that runs an action. The button ignores clicks during the action, and shows errors as notifications.
 *
 * @param {Child} label
 * @param {(button: HTMLButtonElement) => Promise<unknown>} action
 * @param {import('./dom.js').Attributes} [attributes]
 */
export function actionButton (label, action, attributes = {}) {
  const button = h('button', {
    type: 'button',
    ...attributes,
    async onclick () {
      if (button.ariaDisabled === 'true' || button.ariaBusy === 'true') return
      button.ariaBusy = 'true'
      try {
        await inSession(() => action(button))
      } catch (error) {
        if (isOutdated(error)) await refresh()
        notify(wordsOf(error), 'wrong')
      } finally {
        button.ariaBusy = null
      }
    },
  }, label)
  return button
}

/**
 * Tells whether the page is older than what it shows: somebody else was faster, or an earlier response was lost. The
 * page below a dialog stays, because the dialog may belong to a form of it.
 *
 * @param {unknown} error
 */
const isOutdated = error => error instanceof ApiError && [403, 404, 409, 410].includes(error.status) &&
  !document.querySelector('dialog')

let dialogs = 0

/**
 * Opens a dialog. When it closes, resolves to the value passed to `close`, or to `undefined`. If the user closes it
 * while its form is being sent, resolves after that.
 *
 * @template Result
 * @param {string} title
 * @param {(close: (result?: Result) => void) => Child[]} content
 * @returns {Promise<Result | undefined>}
 */
export function openDialog (title, content) {
  return new Promise(resolve => {
    const id = `dialog-${++dialogs}`
    /** @type {Result | undefined} */
    let outcome
    const dialog = h('dialog', {
      'aria-labelledby': id,
      onclose () {
        const isSending = dialog.querySelector('form [aria-busy="true"]') !== null
        dialog.remove()
        placeNotices()
        if (!isSending || outcome !== undefined) resolve(outcome)
      },
    })
    dialog.append(h('h2', { id }, title), ...content(result => {
      outcome = result
      if (dialog.open) dialog.close()
      else resolve(outcome)
    }).filter(child => child instanceof Node))
    document.body.append(dialog)
    dialog.showModal()
    placeNotices()
  })
}

/**
 * A field with a link to copy.
 *
 * @param {string} label
 * @param {string} href
 */
export const linkField = (label, href) => h('div', { class: 'field' },
  h('label', { for: 'address' }, label),
  h('input', { id: 'address', readonly: true, value: href, onfocus: ({ target }) => target.select() }))

/** Closes all dialogs, because they belong to the previous page. */
export function closeDialogs () {
  for (const dialog of document.querySelectorAll('dialog')) dialog.close()
}

/**
 * Asks the user to confirm an action that cannot be undone.
 *
 * @param {string} title
 * @param {string} text
 * @param {string} verb the label of the button
 * @param {string} [keep] the label of the button that changes nothing
 */
export async function confirmed (title, text, verb, keep = 'Cancel') {
  return await openDialog(title, close => [
    h('p', {}, text),
    h('div', { class: 'actions' },
      h('button', { type: 'button', onclick: () => close(false) }, keep),
      h('button', { type: 'button', class: 'danger', onclick: () => close(true) }, verb)),
  ]) === true
}

/**
 * Creates links to the previous and the next page.
 *
 * @param {number} page
 * @param {number} pages
 * @param {(page: number) => string} address
 */
export function pager (page, pages, address) {
  if (pages <= 1) return null
  return h('nav', { class: 'pager', 'aria-label': 'Pages' },
    page > 1 ? h('a', { href: address(page - 1), rel: 'prev' }, '← Previous') : h('span'),
    h('span', {}, `Page ${page} of ${pages}`),
    page < pages ? h('a', { href: address(page + 1), rel: 'next' }, 'Next →') : h('span'))
}

/**
 * Creates a link to an external site; `null` if the URL is not http(s).
 *
 * @param {string | null} address
 * @param {string} words
 */
export const outside = (address, words) =>
  isWeb(address) ? h('a', { href: address, rel: 'external noopener noreferrer', target: '_blank' }, words) : null

/**
 * Creates a table that scrolls horizontally on narrow screens.
 *
 * @param {string} caption
 * @param {string[]} columns
 * @param {Child[][]} rows
 */
export function table (caption, columns, rows) {
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
    h('table', {},
      h('caption', {}, caption),
      h('thead', {}, h('tr', {}, ...columns.map(column => h('th', { scope: 'col' }, column)))),
      h('tbody', {}, ...rows.map(([first, ...others]) => h('tr', {},
        h('th', { scope: 'row' }, first), ...others.map(cell => h('td', {}, cell)))))))
}

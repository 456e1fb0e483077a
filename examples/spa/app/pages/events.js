import { ApiError, call, client, save } from '../api.js'
import { EMAILS } from '../config.js'
import { h } from '../dom.js'
import { follow, isSame } from '../live.js'
import { ownClubs } from '../membership.js'
import {
  actionButton, atTime, calendarLeaf, confirmed, count, cover, eventLine, goingOf, heading, inColour, isOver, isPast,
  lead, linkField, nothing, notify, openDialog, outside, untilTime, wordsOf,
} from '../parts.js'
import { go, refresh, setAddress } from '../router.js'
import { currentUser, signInToDo, takeWish } from '../session.js'
import { subscribeButton } from '../subscribe.js'
import { unverified } from './account.js'

/** @import { PublicList, Schemas } from 'community-platform-client' */
/** @import { Visit } from '../router.js' */
/** @typedef {Schemas['AgendaEvent']} AgendaEvent */
/** @typedef {Schemas['OwnSeat']} OwnSeat */

const LIMIT = 12

/** Maximum number of lists that a page can follow. */
export const FOLLOWED = 8

/** The value of the address for all clubs of the user. */
const MINE = 'mine'

/**
 * The events to come, or the past events of a year, of all clubs, of the clubs of the user, or of one.
 *
 * @param {Visit} visit
 */
export async function eventsPage ({ query }) {
  const year = yearOf(query)
  const club = query.get('club') ?? ''
  const cursor = query.get('cursor')
  const own = (await ownClubs()).filter(({ state }) => state === 'member').map(({ clubId }) => clubId)
  // Without a club of their own, a user finds all events behind a link to their clubs.
  const chosen = club === MINE ? own : club ? [club] : []
  const load = () => year === null ? comingEvents(chosen, cursor) : pastEvents(year, chosen)
  const [{ clubs }, { events, next, lists }] = await Promise.all([call(client.GET('/club-pages')), load()])
  if (club && club !== MINE && !clubs.some(({ id }) => id === club)) throw new ApiError('Club not found', 404)
  const { element, update } = eventCards(events)
  const hint = follow(lists, async () => update((await load()).events))
  const thisYear = new Date().getFullYear()
  /** @param {Record<string, string>} values */
  const address = values => `/events?${new URLSearchParams({ ...club && { club }, ...values })}`
  const select = h('select', {
    id: 'club',
    /** @param {{ target: HTMLSelectElement }} event */
    async onchange ({ target: { value } }) {
      await go(`/events?${new URLSearchParams({
        ...value && { club: value }, ...year !== null && { year: String(year) },
      })}`)
      // Arrow keys choose one club after the other.
      const next = /** @type {HTMLElement | null} */ (document.querySelector('#club'))
      next?.focus()
    },
  }, h('option', { value: '' }, 'All clubs'),
  own.length > 0 && h('option', { value: MINE, selected: club === MINE }, 'My clubs'),
  ...clubs.map(({ id, name }) => h('option', { value: id, selected: id === club }, name)))
  return [
    heading('Events', lead(year === null ? 'Everyone is welcome.' : `Past events of ${year}.`),
      h('p', { class: 'actions' }, subscribeButton(
        club && club !== MINE ? `/feeds/clubs/${club}.ics` : '/feeds/events.ics'))),
    h('div', { class: 'tools' },
      h('nav', { class: 'switch', 'aria-label': 'Time' },
        h('a', { href: address({}), 'aria-current': year === null && 'true' }, 'Coming'),
        h('a', { href: address({ year: String(thisYear) }), 'aria-current': year !== null && 'true' }, 'Past')),
      h('div', { class: 'field inline' }, h('label', { for: 'club' }, 'Club'), select)),
    hint,
    events.length === 0
      ? nothing(year === null ? 'No events are planned at the moment.' : `There are no past events in ${year}.`)
      : element,
    year === null ? laterEvents(next === null ? null : address({ cursor: next })) : years(year, thisYear, address),
  ].filter(node => node !== null)
}

/**
 * The year in the address of the page; `null` for events to come.
 *
 * @param {URLSearchParams} query
 */
function yearOf (query) {
  const year = Number(query.get('year'))
  return Number.isInteger(year) && year >= 1900 && year < 9999 ? year : null
}

/** @param {string | null} href */
const laterEvents = href => href === null
  ? null
  : h('nav', { class: 'pager', 'aria-label': 'Pages' },
    h('span'), h('a', { href, rel: 'next' }, 'Later events →'))

/**
 * @param {number} year
 * @param {number} thisYear
 * @param {(values: Record<string, string>) => string} address
 */
const years = (year, thisYear, address) => h('nav', { class: 'pager', 'aria-label': 'Years' },
  h('a', { href: address({ year: String(year - 1) }), rel: 'prev' }, `← ${year - 1}`),
  year < thisYear ? h('a', { href: address({ year: String(year + 1) }), rel: 'next' }, `${year + 1} →`) : h('span'))

/**
 * A page of the events to come, and its list.
 *
 * @param {string[]} club
 * @param {string | null} cursor
 */
async function comingEvents (club, cursor) {
  const query = { limit: String(LIMIT), club, ...cursor && { cursor } }
  const { events, next } = await call(client.GET('/agenda', { params: { query } }))
  return { events, next, lists: [listOf(query)] }
}

/** @param {Record<string, string | string[]>} query */
function listOf (query) {
  const pairs = Object.entries(query).flatMap(([name, values]) => [values].flat().map(value => [name, value]))
  return /** @type {const} */ (`/agenda?${new URLSearchParams(pairs)}`)
}

/**
 * The list with an event: the events of its club that run when it begins. Others may have begun before.
 *
 * @param {{ clubId: string, date: string }} event
 */
export const listWith = ({ clubId, date }) => listOf({
  club: clubId, from: date, to: new Date(Date.parse(date) + 1).toISOString(), limit: '100',
})

/**
 * The events that began in a year and are over, the latest first, and their lists.
 *
 * @param {number} year
 * @param {string[]} club
 * @param {number} [last] a later year that is also in the list
 */
export async function pastEvents (year, club, last = year) {
  // All people who look at the page on a day share a list, which the service reads once.
  const midnight = new Date(new Date().setUTCHours(24, 0, 0, 0)).toISOString()
  const [from, end] = [new Date(year, 0).toISOString(), new Date(last + 1, 0).toISOString()]
  const query = { from, to: end < midnight ? end : midnight, limit: '100', club }
  /** @type {AgendaEvent[]} */
  const found = []
  /** @type {PublicList[]} */
  const lists = []
  /** @type {string | null} */
  let cursor = null
  do {
    const search = { ...query, ...cursor && { cursor } }
    lists.push(listOf(search))
    /** @type {{ events: AgendaEvent[], next: string | null }} */
    const page = await call(client.GET('/agenda', { params: { query: search } }))
    found.push(...page.events)
    cursor = page.next
  } while (cursor)
  const past = found.filter(event => isOver(event) && event.date >= from)
  return { events: past.reverse(), next: null, lists: lists.slice(0, FOLLOWED) }
}

/**
 * Cards of events. `update` shows new numbers, and returns whether these are all changes.
 *
 * @param {AgendaEvent[]} events
 */
function eventCards (events) {
  const cards = events.map(card)
  return {
    element: h('ul', { class: 'events' }, ...cards.map(({ element }) => element)),
    /** @param {AgendaEvent[]} next */
    update (next) {
      for (const { event, numbers } of cards) {
        const now = next.find(({ id }) => id === event.id)
        if (now) numbers.replaceChildren(...numbersOf(now))
      }
      return isSame(events, next)
    },
  }
}

/**
 * Lines of events. `update` shows new numbers, and returns whether these are all changes.
 *
 * @param {AgendaEvent[]} events
 */
export function eventLines (events) {
  const lines = events.map(event => ({ id: event.id, element: eventLine(event) }))
  return {
    element: h('ul', { class: 'agenda' }, ...lines.map(({ element }) => element)),
    /** @param {AgendaEvent[]} next */
    update (next) {
      for (const { id, element } of lines) {
        const now = next.find(event => event.id === id)
        if (now) element.querySelector('.going')?.replaceChildren(goingOf(now.comingCount))
      }
      return isSame(events, next)
    },
  }
}

/** @param {AgendaEvent} event */
function card (event) {
  const { id, title, description, imageUrl, date, endsAt, place, club } = event
  const numbers = h('p', { class: 'meta' }, ...numbersOf(event))
  const over = isOver(event)
  const element = inColour(club.name, h('li', { class: over && 'past' },
    cover(title, imageUrl, { of: club.name, wide: true }),
    calendarLeaf(date),
    h('div', { class: 'what' },
      h('h2', {}, h('a', { href: `/events/${id}` }, title)),
      h('p', { class: 'meta' }, h('span', { class: 'club' }, club.name), atTime(date), untilTime(date, endsAt),
        place && h('span', {}, place)),
      h('p', { class: 'short' }, description)),
    h('div', { class: 'foot' }, numbers, over && h('span', { class: 'badge' }, 'Over'))))
  return { event, numbers, element }
}

/** @param {AgendaEvent} event */
const numbersOf = event => [h('span', {}, howMany(event)), seats(event)].filter(node => node !== null)

/** @param {AgendaEvent} event */
function howMany ({ registrationCount, comingCount }) {
  if (comingCount > 0) return `${count(comingCount, 'person', 'people')} registered`
  return registrationCount === 0 ? 'Nobody has registered yet' : 'Everybody has cancelled'
}

/** @param {AgendaEvent} event */
function seats ({ capacity, seatsLeft, waitingCount, ...event }) {
  if (capacity !== null && isDrawing(event)) {
    return h('span', {}, `${count(capacity, 'seat is', 'seats are')} drawn on `, atTime(event.drawAt))
  }
  if (capacity === null || seatsLeft === null || isOver(event)) return null
  return seatsLeft > 0
    ? h('span', {}, `${seatsLeft} of ${count(capacity, 'seat')} left`)
    : h('span', { class: 'badge draft' }, waitingCount > 0
      ? `Full: ${count(waitingCount, 'person is', 'people are')} waiting`
      : 'Full: new people wait')
}

/**
 * Whether the seats of an event wait for their draw.
 *
 * @template {{ drawAt: string | null, drawnAt: string | null }} E
 * @param {E} event
 * @returns {event is E & { drawAt: string }}
 */
const isDrawing = event => event.drawAt !== null && event.drawnAt === null

/**
 * An event, with its own address to share.
 *
 * @param {Visit} visit
 */
export async function eventPage ({ parts: [id = ''], query }) {
  const problem = takeWish(query) ? await registerFor(id) : null
  if (query.has('wish')) setAddress(`/events/${id}`)
  const load = () => Promise.all([call(client.GET('/agenda/{id}', { params: { path: { id } } })), ownSeat(id)])
  const [{ event }, own] = await load()
  const { account, isTold } = own && !isOver(event) ? await readEmails() : {}
  const { title, description, imageUrl, date, endsAt, place, hasOnlineUrl, club } = event
  const numbers = h('p', { class: 'meta' }, ...numbersOf(event))
  const seat = seatPart(event, own, isTold === true)
  const online = h('span', {}, onlineLink(own))
  const hint = follow([listWith(event)], async () => {
    const [{ event: now }, ownNow] = await load()
    numbers.replaceChildren(...numbersOf(now))
    const shown = seat.update(now, ownNow)
    const isTold = own?.state !== shown
    if (isTold) online.replaceChildren(onlineLink(ownNow))
    const before = isTold ? { ...own, state: shown, onlineUrl: ownNow?.onlineUrl } : own
    return isSame([{ ...event, drawnAt: now.drawnAt }, before], [now, ownNow])
  })
  return [h('article', { class: 'reading event' },
    cover(title, imageUrl, { of: club.name, wide: true, large: true }),
    heading(title, h('p', { class: 'meta' },
      h('a', { href: `/clubs/${event.clubId}`, class: 'club' }, club.name))),
    hint,
    h('dl', { class: 'facts' },
      ...fact('When', atTime(date), untilTime(date, endsAt)),
      ...place ? fact('Where', place) : [],
      ...hasOnlineUrl ? fact('Online', online) : [],
      ...event.drawAt ? fact('Draw', h('a', { href: `/events/${id}/draw` }, 'How the seats are drawn')) : []),
    numbers,
    problem && h('p', { class: 'problem', role: 'alert' }, problem),
    ...isOver(event)
      ? [h('p', {}, h('span', { class: 'badge' }, 'Over'))]
      : [seat.element, ...account && own?.state !== 'declined' ? unverified(account) : []],
    h('p', { class: 'actions start' },
      !isOver(event) &&
        actionButton('Add to my calendar', async () => save(await calendarFile(event), 'event.ics')),
      actionButton('Copy the link', copyLink)),
    ...description.split(/\n\s*\n/).map(paragraph => h('p', {}, paragraph)),
    h('p', {}, h('a', { href: '/events' }, '← All events')))].map(element => inColour(club.name, element))
}

/**
 * @param {string} name
 * @param {...import('../dom.js').Child} values
 */
const fact = (name, ...values) => [h('dt', {}, name), h('dd', {}, ...values)]

/** Copies the link of the page. Shows it if the browser allows no copies, for example without HTTPS. */
async function copyLink () {
  try {
    await navigator.clipboard.writeText(location.href)
    notify('The link has been copied.')
  } catch {
    await openDialog('Copy the link', close => [
      linkField('Link', location.href),
      h('div', { class: 'actions' }, h('button', { type: 'button', onclick: () => close() }, 'Close')),
    ])
  }
}

/** @param {OwnSeat | undefined} own */
function onlineLink (own) {
  const link = own?.onlineUrl && outside(own.onlineUrl, own.onlineUrl)
  if (link) return link
  return own?.state === 'seated' ? 'The link follows.' : 'People with a seat see the link here.'
}

/**
 * The seat of the user; `undefined` if they are not registered.
 *
 * @param {string} id
 */
export async function ownSeat (id) {
  if (!currentUser()) return undefined
  const { seats } = await call(client.GET('/me/seats'))
  return seats.find(({ event }) => event.id === id)
}

/**
 * Registers a user who pressed the button before they signed in. Returns the message of an error.
 *
 * @param {string} eventId
 */
async function registerFor (eventId) {
  try {
    await call(client.POST('/events/{eventId}/register', { params: { path: { eventId } } }))
    return null
  } catch (error) {
    // They may have registered before, with a different device.
    return await ownSeat(eventId) ? null : wordsOf(error)
  }
}

/** The account of the user, and whether an email tells them about a seat. */
async function readEmails () {
  const [{ account }, { notifications }] = await Promise.all([
    call(client.GET('/me/account')), call(client.GET('/me/notifications')),
  ])
  return { account, isTold: account.isEmailVerified && notifications.registration }
}

/**
 * Buttons with which the user registers, gives up a seat, or comes after all. `update` shows whether seats are left,
 * the new place in line, and that a person who waited has a seat.
 *
 * @param {AgendaEvent} event
 * @param {OwnSeat | undefined} own
 * @param {boolean} isTold whether an email tells the user about a seat
 */
function seatPart (event, own, isTold) {
  const { id, title, capacity, opensAt, closesAt } = event
  let { seatsLeft } = event
  /** @param {boolean} coming */
  async function say (coming) {
    const params = { path: { eventId: id } }
    const { seat } = await call(client.PUT('/me/seats/{eventId}', { params, body: { coming } }))
    await refresh()
    tell(seat)
  }
  /** @param {OwnSeat | undefined} seat */
  const tell = seat => notify(seat?.state === 'declined'
    ? "You've cancelled your registration."
    : seat?.state === 'waiting'
      ? `You are number ${seat.position} in line for “${title}”.`
      : seat?.state === 'drawing'
        ? `You take part in the draw for “${title}”.`
        : `You're registered for “${title}”.`)
  const number = h('span', { class: 'number' }, own?.position)
  const register = actionButton(verbOf(event), async () => {
    if (!currentUser()) return go(signInToDo(`/events/${id}`))
    try {
      await call(client.POST('/events/{eventId}/register', { params: { path: { eventId: id } } }))
    } catch (error) {
      // For example, the user has registered in a different tab.
      if (error instanceof ApiError && error.status === 400) await refresh()
      throw error
    }
    await refresh()
    // The last seat may have been taken since the page was loaded.
    tell(await ownSeat(id))
  }, { class: 'primary' })
  const hasSeat = capacity === null ? "✓ You're registered." : '✓ You have a seat.'
  // Screen readers announce a new text.
  const words = h('span', { class: 'words', role: 'status' }, wordsFor(own?.state))
  let state = own?.state
  return {
    element: h('p', { class: 'seat' }, ...content()),
    /**
     * Returns the state of the seat that is shown.
     *
     * @param {AgendaEvent} event
     * @param {OwnSeat | undefined} now
     */
    update (event, now) {
      seatsLeft = event.seatsLeft
      register.replaceChildren(verbOf(event))
      if (now?.position) number.replaceChildren(String(now.position))
      const isDrawn = state === 'drawing' && (now?.state === 'seated' || now?.state === 'waiting')
      if (isDrawn || (state === 'waiting' && now?.state === 'seated')) {
        // The button stays in its place if the text has fewer lines.
        words.style.minHeight = `${words.offsetHeight}px`
        words.replaceChildren(wordsFor(now?.state))
        state = now?.state
      }
      return state
    },
  }

  /** @param {OwnSeat['state']} [state] */
  function wordsFor (state) {
    if (state === 'drawing') {
      return h('span', {}, '✓ You take part in the draw on ', atTime(String(event.drawAt)), '. ',
        EMAILS && (isTold
          ? 'You get an email with the result.'
          : h('a', { href: '/me/settings' }, 'Get an email with the result')))
    }
    if (state !== 'waiting') return hasSeat
    // The button stays in its place if the number has fewer digits.
    number.style.minWidth = `${number.textContent?.length}ch`
    return h('span', {}, 'You are number ', number, ' in line. ', EMAILS && (isTold
      ? 'You get an email when a seat becomes free.'
      : h('a', { href: '/me/settings' }, 'Get an email when a seat becomes free')))
  }

  function content () {
    if (!own) return whenToRegister()
    if (own.state === 'declined') {
      return ["You said that you can't come.",
        actionButton('I can come after all', () => say(true), { class: 'primary' })]
    }
    return [
      words,
      actionButton("I can't come", async () => {
        const text = state === 'drawing'
          ? 'You can take part again until the seats are drawn.'
          : seatsLeft === 0
            ? 'The next person in line gets your place. If you change your mind, you stand at the end of the line.'
            : `You can change your mind later${seatsLeft === null ? '' : ', as long as seats are left'}.`
        const question = `Cancel your registration for “${title}”?`
        if (await confirmed(question, text, "I can't come", 'Keep my place')) await say(false)
      }),
    ]
  }

  /** The button is there before the time, because a device can have the wrong time, and the service decides. */
  function whenToRegister () {
    if (closesAt && isPast(closesAt)) return [h('span', {}, 'Registration closed on ', atTime(closesAt), '.')]
    const [verb, time] = opensAt && !isPast(opensAt) ? ['opens', opensAt] : ['closes', closesAt]
    return [time && h('span', { class: 'words' }, `Registration ${verb} on `, atTime(time), '.'), register]
  }
}

/** @param {AgendaEvent} event */
const verbOf = ({ seatsLeft }) => seatsLeft === 0 ? 'Stand in line' : 'Register'

/**
 * The event as a file for calendar apps, from the calendar of its club. The service counts the changes in it, so that a
 * newer file replaces an older one, or one from an email.
 *
 * @param {AgendaEvent} event
 */
async function calendarFile ({ id, clubId }) {
  const params = { path: { id: clubId } }
  const calendar = await call(client.GET('/feeds/clubs/{id}.ics', { params, parseAs: 'text' }))
  const entries = calendar.match(/^BEGIN:VEVENT$[^]*?^END:VEVENT$/gm) ?? []
  const entry = entries.find(lines => lines.includes(`\nUID:${id}\r`))
  if (!entry) throw new ApiError('This event has changed. Please reload the page.')
  const lines = ['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//Community Platform//EN', entry, 'END:VCALENDAR', '']
  return new Blob([lines.join('\r\n')], { type: 'text/calendar' })
}

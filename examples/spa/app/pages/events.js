import { call, client } from '../api.js'
import { h } from '../dom.js'
import { follow } from '../live.js'
import {
  actionButton, atTime, calendarLeaf, changeHint, confirmed, count, cover, heading, inColour, isOver, lead, nothing,
  notify, outside, untilTime,
} from '../parts.js'
import { go, here, refresh } from '../router.js'
import { currentUser } from '../session.js'
import { subscribeButton } from '../subscribe.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Visit } from '../router.js' */
/** @typedef {Schemas['AgendaEvent']} AgendaEvent */
/** @typedef {Schemas['OwnSeat']} OwnSeat */

const LIMIT = 12

/**
 * The events to come, or the past events of a year, of all clubs or of one.
 *
 * @param {Visit} visit
 */
export async function eventsPage ({ query }) {
  const year = Number(query.get('year')) || null
  const club = query.get('club') ?? ''
  const cursor = query.get('cursor')
  const search = { limit: String(LIMIT), ...club && { club }, ...cursor && { cursor } }
  const [{ clubs }, { events, next }] = await Promise.all([
    call(client.GET('/clubs')),
    year === null ? call(client.GET('/agenda', { params: { query: search } })) : pastEvents(year, club),
  ])
  const { element, update } = eventCards(events)
  const hint = changeHint()
  if (year === null) {
    follow([`/agenda?${new URLSearchParams(search)}`], async () => {
      const { events } = await call(client.GET('/agenda', { params: { query: search } }))
      if (!update(events)) hint.show()
    })
  }
  const thisYear = new Date().getFullYear()
  /** @param {Record<string, string>} values */
  const address = values => `/events?${new URLSearchParams({ ...club && { club }, ...values })}`
  const select = h('select', {
    id: 'club',
    /** @param {{ target: HTMLSelectElement }} event */
    onchange: ({ target: { value } }) => go(`/events?${new URLSearchParams({
      ...value && { club: value }, ...year !== null && { year: String(year) },
    })}`),
  }, h('option', { value: '' }, 'All clubs'),
  ...clubs.map(({ id, name }) => h('option', { value: id, selected: id === club }, name)))
  return [
    heading('Events', lead(year === null ? 'Everyone is welcome.' : `Past events of ${year}.`),
      h('p', { class: 'actions' }, subscribeButton(club ? `/feeds/clubs/${club}.ics` : '/feeds/events.ics'))),
    h('div', { class: 'tools' },
      h('nav', { class: 'switch', 'aria-label': 'Time' },
        h('a', { href: address({}), 'aria-current': year === null && 'true' }, 'Coming'),
        h('a', { href: address({ year: String(thisYear) }), 'aria-current': year !== null && 'true' }, 'Past')),
      h('div', { class: 'field inline' }, h('label', { for: 'club' }, 'Club'), select)),
    hint.element,
    events.length === 0
      ? nothing(year === null ? 'No events are planned at the moment.' : `There are no past events in ${year}.`)
      : element,
    year === null ? laterEvents(next === null ? null : address({ cursor: next })) : years(year, thisYear, address),
  ].filter(node => node !== null)
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
 * The events of a year that are over, the latest first.
 *
 * @param {number} year
 * @param {string} club
 */
async function pastEvents (year, club) {
  const now = new Date().toISOString()
  const [from, end] = [new Date(year, 0).toISOString(), new Date(year + 1, 0).toISOString()]
  const query = { from, to: end < now ? end : now, limit: '100', ...club && { club } }
  /** @type {AgendaEvent[]} */
  const found = []
  /** @type {string | null} */
  let cursor = null
  do {
    /** @type {{ events: AgendaEvent[], next: string | null }} */
    const page = await call(client.GET('/agenda', { params: { query: { ...query, ...cursor && { cursor } } } }))
    found.push(...page.events)
    cursor = page.next
  } while (cursor)
  return { events: found.filter(isOver).reverse(), next: null }
}

/**
 * Cards of events. `update` shows new numbers, and returns whether it could show all: other changes would move the
 * cards.
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
      const fixed = (/** @type {AgendaEvent[]} */ list) => list.map(({ registrationCount, seatsLeft, ...rest }) => rest)
      return JSON.stringify(fixed(next)) === JSON.stringify(fixed(events))
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
const numbersOf = event => [h('span', {}, howMany(event.registrationCount)), seats(event)].filter(node => node !== null)

/** @param {number} number */
const howMany = number => number === 0 ? 'No registrations yet' : `${count(number, 'person', 'people')} registered`

/** @param {AgendaEvent} event */
function seats ({ capacity, seatsLeft, ...event }) {
  if (capacity === null || seatsLeft === null || isOver(event)) return null
  return seatsLeft > 0
    ? h('span', {}, `${seatsLeft} of ${count(capacity, 'seat')} left`)
    : h('span', { class: 'badge draft' }, 'Full: new people wait')
}

/**
 * An event, with its own address to share.
 *
 * @param {Visit} visit
 */
export async function eventPage ({ parts: [id = ''] }) {
  const [{ event }, own] = await Promise.all([
    call(client.GET('/agenda/{id}', { params: { path: { id } } })), ownSeat(id),
  ])
  const { title, description, imageUrl, date, endsAt, place, hasOnlineUrl, club } = event
  const numbers = h('p', { class: 'meta' }, ...numbersOf(event))
  const hint = changeHint()
  // The list that begins with this event contains its numbers.
  if (!isOver(event)) {
    follow([`/agenda?${new URLSearchParams({ club: event.clubId, from: date, limit: '1' })}`], async () => {
      const { event: now } = await call(client.GET('/agenda/{id}', { params: { path: { id } } }))
      numbers.replaceChildren(...numbersOf(now))
      if (now.date !== date || now.endsAt !== endsAt || now.place !== place || now.title !== title) hint.show()
    })
  }
  return [h('article', { class: 'reading event' },
    cover(title, imageUrl, { of: club.name, wide: true, large: true }),
    heading(title, h('p', { class: 'meta' },
      h('a', { href: `/clubs/${event.clubId}`, class: 'club' }, club.name))),
    hint.element,
    h('dl', { class: 'facts' },
      ...fact('When', atTime(date), untilTime(date, endsAt)),
      ...place ? fact('Where', place) : [],
      ...hasOnlineUrl ? fact('Online', onlineLink(own)) : []),
    numbers,
    ...isOver(event) ? [h('p', {}, h('span', { class: 'badge' }, 'Over'))] : [seatPart(event, own)],
    h('p', { class: 'actions start' },
      !isOver(event) &&
        h('a', { class: 'button', href: calendarFile(event), download: 'event.ics' }, 'Add to my calendar'),
      actionButton('Copy the link', async () => {
        await navigator.clipboard.writeText(location.href)
        notify('The link has been copied.')
      })),
    ...description.split(/\n\s*\n/).map(paragraph => h('p', {}, paragraph)),
    h('p', {}, h('a', { href: '/events' }, '← All events')))].map(element => inColour(club.name, element))
}

/**
 * @param {string} name
 * @param {...import('../dom.js').Child} values
 */
const fact = (name, ...values) => [h('dt', {}, name), h('dd', {}, ...values)]

/** @param {OwnSeat | undefined} own */
function onlineLink (own) {
  if (own?.onlineUrl) return outside(own.onlineUrl, own.onlineUrl)
  return own?.state === 'seated' ? 'The link follows.' : 'People with a seat see the link here.'
}

/**
 * The seat of the user; `undefined` if they are not registered.
 *
 * @param {string} id
 */
async function ownSeat (id) {
  if (!currentUser()) return undefined
  const { seats } = await call(client.GET('/me/seats'))
  return seats.find(({ event }) => event.id === id)
}

/**
 * Buttons with which the user registers, gives up a seat, or comes after all.
 *
 * @param {AgendaEvent} event
 * @param {OwnSeat | undefined} own
 */
function seatPart ({ id, title, capacity, seatsLeft }, own) {
  /** @param {boolean} coming @param {string} words */
  async function say (coming, words) {
    await call(client.PUT('/me/seats/{eventId}', { params: { path: { eventId: id } }, body: { coming } }))
    await refresh()
    notify(words)
  }
  if (own?.state === 'declined') {
    return h('p', { class: 'seat' }, "You said that you can't come.",
      actionButton('I can come after all', () => say(true, 'You stand in line again.'), { class: 'primary' }))
  }
  if (own) {
    return h('p', { class: 'seat' },
      own.state === 'waiting'
        ? `You are number ${own.position} in line. You get an email when a seat becomes free.`
        : capacity === null ? "✓ You're registered." : '✓ You have a seat.',
      actionButton("I can't come", async () => {
        const text = capacity === null
          ? 'You can change your mind later.'
          : 'The next person in line gets your place. If you change your mind, you stand at the end of the line.'
        if (await confirmed(`Cancel your registration for “${title}”?`, text, "I can't come")) {
          await say(false, "You've cancelled your registration.")
        }
      }))
  }
  return h('p', { class: 'seat' }, actionButton(seatsLeft === 0 ? 'Stand in line' : 'Register', async () => {
    if (!currentUser()) return go(`/sign-in?${new URLSearchParams({ to: here() })}`)
    await call(client.POST('/events/{eventId}/register', { params: { path: { eventId: id } } }))
    await refresh()
    notify(`You're registered for “${title}”.`)
  }, { class: 'primary' }))
}

/**
 * The URL of a file for calendar apps (RFC 5545).
 *
 * @param {AgendaEvent} event
 */
function calendarFile ({ id, title, date, endsAt, place, createdAt }) {
  const time = (/** @type {string} */ text) => text.replace(/[-:]|\.\d+/g, '')
  const escape = (/** @type {string} */ text) => text.replace(/[\\;,]/g, '\\$&').replace(/\r?\n/g, '\\n')
  const lines = [
    'BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//Community Platform//EN', 'BEGIN:VEVENT', `UID:${id}`,
    `DTSTAMP:${time(createdAt)}`, `DTSTART:${time(date)}`,
    endsAt ? `DTEND:${time(endsAt)}` : 'DURATION:PT2H',
    `SUMMARY:${escape(title)}`, ...place ? [`LOCATION:${escape(place)}`] : [], `URL:${location.href}`,
    'END:VEVENT', 'END:VCALENDAR', '',
  ]
  return `data:text/calendar;charset=utf-8,${encodeURIComponent(lines.join('\r\n'))}`
}

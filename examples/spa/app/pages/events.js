import { call, client } from '../api.js'
import { h } from '../dom.js'
import {
  actionButton, atTime, calendarLeaf, count, cover, heading, inColour, isOver, lead, nothing, notify, pager,
} from '../parts.js'
import { go, here } from '../router.js'
import { currentUser } from '../session.js'
import { subscribeButton } from '../subscribe.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Visit } from '../router.js' */

const LIMIT = 6

/**
 * All events, one page at a time, with buttons to register.
 *
 * @param {Visit} visit
 */
export async function eventsPage ({ query }) {
  const sort = query.get('sort') === 'asc' ? 'asc' : 'desc'
  const page = query.get('page') ?? '1'
  const [{ events, pagination }, registered] = await Promise.all([
    call(client.GET('/events', { params: { query: { page, sort, limit: String(LIMIT) } } })),
    registeredEvents(),
  ])
  /** @param {Record<string, string>} change */
  const address = change => `/events?${new URLSearchParams({ sort, page: '1', ...change })}`
  return [
    heading('Events', lead(`${count(pagination.total, 'event')} of all clubs. Everyone is welcome.`),
      h('p', { class: 'actions' }, subscribeButton('/feeds/events.ics'))),
    h('nav', { class: 'switch', 'aria-label': 'Order' },
      h('a', { href: address({ sort: 'desc' }), 'aria-current': sort === 'desc' && 'true' }, 'Latest date first'),
      h('a', { href: address({ sort: 'asc' }), 'aria-current': sort === 'asc' && 'true' }, 'Earliest date first')),
    events.length === 0
      ? nothing('There are no events on this page.')
      : h('ul', { class: 'events' }, ...events.map(event => eventItem(event, registered))),
    pager(pagination.page, pagination.pages, page => address({ page: String(page) })),
  ].filter(node => node !== null)
}

/** The ids of the events that the user is registered for. */
async function registeredEvents () {
  if (!currentUser()) return new Set()
  const { registrations } = await call(client.GET('/events/registered'))
  return new Set(registrations.map(({ eventId }) => eventId))
}

/**
 * @param {Schemas['EventWithCount']} event
 * @param {Set<unknown>} registered
 */
function eventItem ({ id, title, description, imageUrl, date, club, registrationCount }, registered) {
  const going = h('span', {}, howMany(registrationCount))
  const past = isOver({ date })
  /** @param {HTMLButtonElement} button */
  const markRegistered = button => {
    button.ariaDisabled = 'true'
    button.replaceChildren("✓ You're registered")
  }
  const button = actionButton('Register', async button => {
    if (!currentUser()) return go(`/sign-in?${new URLSearchParams({ to: here() })}`)
    await call(client.POST('/events/{eventId}/register', { params: { path: { eventId: id } } }))
    markRegistered(button)
    going.replaceChildren(howMany(registrationCount + 1))
    notify(`You're registered for “${title}”.`)
  }, { class: 'primary', 'aria-describedby': `event-${id}` })
  if (registered.has(id)) markRegistered(button)

  return inColour(club.name, h('li', { class: past && 'past' },
    cover(title, imageUrl, { of: club.name, wide: true }),
    calendarLeaf(date),
    h('div', { class: 'what' },
      h('h2', { id: `event-${id}` }, title),
      h('p', { class: 'meta' }, h('span', { class: 'club' }, club.name), atTime(date)),
      h('p', {}, description)),
    h('div', { class: 'foot' },
      h('p', { class: 'meta' }, going),
      past ? h('span', { class: 'badge' }, registered.has(id) ? 'You were registered' : 'Over') : button)))
}

/** @param {number} number */
const howMany = number => number === 0 ? 'No registrations yet' : `${count(number, 'person', 'people')} registered`

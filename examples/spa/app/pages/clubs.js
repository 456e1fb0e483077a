import { ApiError, call, client } from '../api.js'
import { h } from '../dom.js'
import { follow, isSame } from '../live.js'
import {
  count, cover, eventLine, heading, inColour, isPast, lead, nameOf, nothing, portrait, ROLES,
} from '../parts.js'
import { here } from '../router.js'
import { currentUser } from '../session.js'
import { subscribeButton } from '../subscribe.js'
import { eventLines } from './events.js'
import { mentorCards } from './mentors.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Visit } from '../router.js' */
/** @typedef {Schemas['Club']} Club */

export async function clubsPage () {
  const { clubs } = await call(client.GET('/clubs'))
  const sorted = clubs.toSorted((one, other) => one.name.localeCompare(other.name))
  /** @type {Map<string, HTMLElement>} */
  const sizes = new Map(clubs.map(club => [club.id, h('p', { class: 'meta' }, sizeOf(club))]))
  const shown = (/** @type {Club[]} */ list) => list.map(({ members, events, ...rest }) => rest)
  const hint = follow(['/clubs'], async () => {
    const { clubs: now } = await call(client.GET('/clubs'))
    for (const club of now) sizes.get(club.id)?.replaceChildren(sizeOf(club))
    return isSame(shown(clubs), shown(now))
  })
  return [
    heading('Clubs', lead('Run by students, open to all students.')),
    hint,
    clubs.length === 0
      ? nothing('There are no clubs yet.')
      : h('ul', { class: 'cards' }, ...sorted.map(({ id, name, description, imageUrl }) =>
        inColour(name, h('li', { class: 'card' },
          cover(name, imageUrl, { wide: true }),
          h('h2', {}, h('a', { href: `/clubs/${id}` }, name)),
          h('p', {}, description),
          sizes.get(id))))),
  ]
}

/** @param {Club} club */
const sizeOf = ({ members, events }) => `${count(members.length, 'member')} · ${count(events.length, 'event')}`

/**
 * A club with its mentors, members and events. Upcoming events come first.
 *
 * @param {Visit} visit
 */
export async function clubPage ({ parts: [id] }) {
  const load = async () => {
    const [{ clubs }, { mentors }, { events }] = await Promise.all([
      call(client.GET('/clubs')),
      call(client.GET('/mentors')),
      call(client.GET('/agenda', { params: { query: { club: id, limit: '100' } } })),
    ])
    return { club: clubs.find(club => club.id === id), own: mentors.filter(({ clubId }) => clubId === id), events }
  }
  const { club, own, events: coming } = await load()
  if (!club) throw new ApiError('Club not found', 404)

  const { name, description, imageUrl, clubHeadId, members, events } = club
  const [lines, cards] = [eventLines(coming), mentorCards(own, new Set(), 'h3')]
  const hint = follow(['/clubs', '/mentors', `/agenda?${new URLSearchParams({ club: club.id, limit: '100' })}`],
    async () => {
      const now = await load()
      const areSame = [lines.update(now.events), cards.update(now.own), isSame(club, now.club)]
      return areSame.every(Boolean)
    })
  const byDate = events.toSorted((one, other) => other.date.localeCompare(one.date))
  // This list of the club has no ends, so the list of events to come tells which events still run.
  const past = byDate.filter(({ id, date }) => isPast(date) && !coming.some(event => event.id === id))
    .map(event => ({ ...event, club: { name } }))
  /** @param {typeof members[0]} person */
  const place = ({ id, role }) => id === clubHeadId ? 'Head of the club' : ROLES[role]
  const people = members.toSorted((one, other) => Number(other.id === clubHeadId) - Number(one.id === clubHeadId))
  return [
    cover(name, imageUrl, { wide: true, large: true }),
    heading(name, lead(description), h('p', { class: 'actions' }, subscribeButton(`/feeds/clubs/${id}.ics`))),
    hint,
    section('Upcoming events', coming.length === 0 && 'No events are planned at the moment.', lines.element),
    section('Mentors', own.length === 0 && 'This club has no mentors yet.', cards.element),
    section('Members', members.length === 0 && 'This club has no members yet.', !currentUser()
      // The contract sends them to everybody. An app need not show them.
      ? h('p', {}, `${count(members.length, 'member')}. `,
        h('a', { href: `/sign-in?${new URLSearchParams({ to: here() })}` }, 'Sign in to see who they are'))
      : h('ul', { class: 'members' }, ...people.map(person => h('li', {},
        portrait(nameOf(person)),
        h('span', {}, h('b', {}, nameOf(person)), place(person)))))),
    section('Past events', past.length === 0 && 'This club has no past events yet.',
      h('ul', { class: 'agenda' }, ...past.map(event => eventLine(event)))),
  ].map(element => inColour(name, element))
}

/**
 * @param {string} title
 * @param {string | false} empty the text for an empty list
 * @param {Node} content
 */
export const section = (title, empty, content) =>
  h('section', {}, h('h2', {}, title), empty === false ? content : nothing(empty))

import { ApiError, call, client } from '../api.js'
import { h } from '../dom.js'
import {
  count, cover, eventLine, heading, inColour, isOver, lead, nameOf, nothing, portrait, ROLES,
} from '../parts.js'
import { subscribeButton } from '../subscribe.js'
import { mentorCard } from './mentors.js'

/** @import { Visit } from '../router.js' */

export async function clubsPage () {
  const { clubs } = await call(client.GET('/clubs'))
  const sorted = clubs.toSorted((one, other) => one.name.localeCompare(other.name))
  return [
    heading('Clubs', lead('Run by students, open to all students.')),
    clubs.length === 0
      ? nothing('There are no clubs yet.')
      : h('ul', { class: 'cards' }, ...sorted.map(({ id, name, description, imageUrl, members, events }) =>
        inColour(name, h('li', { class: 'card' },
          cover(name, imageUrl, { wide: true }),
          h('h2', {}, h('a', { href: `/clubs/${id}` }, name)),
          h('p', {}, description),
          h('p', { class: 'meta' }, `${count(members.length, 'member')} · ${count(events.length, 'event')}`))))),
  ]
}

/**
 * A club with its mentors, members and events. Upcoming events come first.
 *
 * @param {Visit} visit
 */
export async function clubPage ({ parts: [id] }) {
  const [{ clubs }, { mentors }, { events: coming }] = await Promise.all([
    call(client.GET('/clubs')),
    call(client.GET('/mentors')),
    call(client.GET('/agenda', { params: { query: { club: id, limit: '100' } } })),
  ])
  const club = clubs.find(club => club.id === id)
  if (!club) throw new ApiError('Club not found. The link may be outdated.', 404)

  const { name, description, imageUrl, clubHeadId, members, events } = club
  const own = mentors.filter(({ clubId }) => clubId === id)
  const byDate = events.toSorted((one, other) => other.date.localeCompare(one.date))
  const past = byDate.filter(isOver).map(event => ({ ...event, club: { name } }))
  /** @param {typeof members[0]} person */
  const place = ({ id, role }) => id === clubHeadId ? 'Head of the club' : ROLES[role]
  const people = members.toSorted((one, other) => Number(other.id === clubHeadId) - Number(one.id === clubHeadId))
  return [
    cover(name, imageUrl, { wide: true, large: true }),
    heading(name, lead(description), h('p', { class: 'actions' }, subscribeButton(`/feeds/clubs/${id}.ics`))),
    section('Upcoming events', coming.length === 0 && 'No events are planned at the moment.',
      h('ul', { class: 'agenda' }, ...coming.map(event => eventLine(event)))),
    section('Mentors', own.length === 0 && 'This club has no mentors yet.',
      h('ul', { class: 'people' }, ...own.map(mentor => mentorCard(mentor, new Set(), 'h3')))),
    section('Members', members.length === 0 && 'This club has no members yet.',
      h('ul', { class: 'members' }, ...people.map(person => h('li', {},
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

import { call, client } from '../api.js'
import { h } from '../dom.js'
import { follow, isSame } from '../live.js'
import { count, cover, eventLine, heading, inColour, lead, nameOf, nothing, portrait } from '../parts.js'
import { subscribeButton } from '../subscribe.js'
import { eventLines, pastEvents } from './events.js'
import { likedMentors, mentorCards } from './mentors.js'

/** @import { Visit } from '../router.js' */

export async function clubsPage () {
  const { clubs } = await call(client.GET('/club-pages'))
  const sorted = clubs.toSorted((one, other) => one.name.localeCompare(other.name))
  const sizes = new Map(clubs.map(({ id, memberCount }) => [id, h('p', { class: 'meta' }, sizeOf(memberCount))]))
  const hint = follow(['/club-pages'], async () => {
    const { clubs: now } = await call(client.GET('/club-pages'))
    for (const { id, memberCount } of now) sizes.get(id)?.replaceChildren(sizeOf(memberCount))
    return isSame(clubs, now)
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

/** @param {number} members */
const sizeOf = members => count(members, 'member')

/**
 * A club with its events, mentors and organizers. Upcoming events come first.
 *
 * @param {Visit} visit
 */
export async function clubPage ({ parts: [id = ''] }) {
  const load = async () => {
    const [{ club }, { mentors }, { events }] = await Promise.all([
      call(client.GET('/club-pages/{id}', { params: { path: { id } } })),
      call(client.GET('/mentors')),
      call(client.GET('/agenda', { params: { query: { club: id, limit: '100' } } })),
    ])
    return { club, own: mentors.filter(({ clubId }) => clubId === id), events }
  }
  const thisYear = new Date().getFullYear()
  const [{ club, own, events }, { events: past }, liked] = await Promise.all([
    load(), pastEvents(thisYear - 1, id, thisYear), likedMentors(),
  ])
  const { name, description, imageUrl, memberCount, organizers } = club
  const [lines, cards] = [eventLines(events), mentorCards(own, liked, 'h3')]
  const size = h('p', {}, sizeOf(memberCount))
  const hint = follow(['/club-pages', '/mentors', `/agenda?${new URLSearchParams({ club: id, limit: '100' })}`],
    async () => {
      const now = await load()
      size.replaceChildren(sizeOf(now.club.memberCount))
      const areSame = [lines.update(now.events), cards.update(now.own), isSame(club, now.club)]
      return areSame.every(Boolean)
    })
  return [
    cover(name, imageUrl, { wide: true, large: true }),
    heading(name, lead(description), h('p', { class: 'actions' }, subscribeButton(`/feeds/clubs/${id}.ics`))),
    hint,
    section('Upcoming events', events.length === 0 && 'No events are planned at the moment.', lines.element),
    section('Mentors', own.length === 0 && 'This club has no mentors yet.', cards.element),
    section('People', false,
      size,
      h('ul', { class: 'members' }, ...organizers.map(person => h('li', {},
        portrait(nameOf(person), person.avatar),
        h('span', {}, h('b', {}, nameOf(person)), person.isHead ? 'Head of the club' : 'Organizer'))))),
    section('Past events', past.length === 0 && 'This club has no past events in the last two years.',
      h('ul', { class: 'agenda' }, ...past.map(event => eventLine({ ...event, comingCount: undefined })))),
    h('p', {}, h('a', { href: `/events?${new URLSearchParams({ club: id, year: String(thisYear - 2) })}` },
      'Earlier events')),
  ].map(element => inColour(name, element))
}

/**
 * @param {string} title
 * @param {string | false} empty the text for an empty list
 * @param {...Node} content
 */
export const section = (title, empty, ...content) =>
  h('section', {}, h('h2', {}, title), ...empty === false ? content : [nothing(empty)])

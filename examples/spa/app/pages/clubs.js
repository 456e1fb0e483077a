import { call, client } from '../api.js'
import { h } from '../dom.js'
import { form } from '../form.js'
import { follow, isSame } from '../live.js'
import { join, membershipPart, organizes, ownClubs } from '../membership.js'
import {
  actionButton, count, cover, eventLine, heading, inColour, lead, nameOf, nothing, notify, openDialog, portrait,
  wordsOf,
} from '../parts.js'
import { here, refresh, setAddress } from '../router.js'
import { hasRole, takeWish } from '../session.js'
import { subscribeButton } from '../subscribe.js'
import { unverified } from './account.js'
import { eventLines, pastEvents } from './events.js'
import { likedMentors, mentorCards } from './mentors.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Visit } from '../router.js' */

export async function clubsPage () {
  const [{ clubs }, own] = await Promise.all([call(client.GET('/club-pages')), ownClubs()])
  const mine = new Set(own.filter(({ state }) => state === 'member').map(({ clubId }) => clubId))
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
          sizes.get(id),
          mine.has(id) && h('p', {}, h('span', { class: 'badge published' }, "You're a member")))))),
  ]
}

/** @param {number} members */
const sizeOf = members => count(members, 'member')

/**
 * A club with its events, mentors and organizers. Upcoming events come first.
 *
 * @param {Visit} visit
 */
export async function clubPage ({ parts: [id = ''], query }) {
  const load = async () => {
    const [{ club }, { mentors }, { events }, clubs] = await Promise.all([
      call(client.GET('/club-pages/{id}', { params: { path: { id } } })),
      call(client.GET('/mentors')),
      call(client.GET('/agenda', { params: { query: { club: id, limit: '100' } } })),
      ownClubs(),
    ])
    return {
      club, events, own: mentors.filter(({ clubId }) => clubId === id), mine: clubs.find(({ clubId }) => clubId === id),
    }
  }
  const result = takeWish(query) ? await joinFor(id) : null
  if (query.has('wish')) setAddress(`/clubs/${id}`)
  const thisYear = new Date().getFullYear()
  const [{ club, own, events, mine }, { events: past }, liked] = await Promise.all([
    load(), pastEvents(thisYear - 1, [id], thisYear), likedMentors(),
  ])
  const { account } = mine?.state === 'requested' || mine?.offered ? await call(client.GET('/me/account')) : {}
  const { name, description, imageUrl, memberCount, organizers } = club
  const [lines, cards] = [eventLines(events), mentorCards(own, liked, 'h3')]
  const size = h('p', {}, sizeOf(memberCount))
  const hint = follow(['/club-pages', '/mentors', `/agenda?${new URLSearchParams({ club: id, limit: '100' })}`],
    async () => {
      const now = await load()
      size.replaceChildren(sizeOf(now.club.memberCount))
      const areSame = [lines.update(now.events), cards.update(now.own), isSame([club, mine], [now.club, now.mine])]
      return areSame.every(Boolean)
    })
  return [
    cover(name, imageUrl, { wide: true, large: true }),
    heading(name, lead(description), h('p', { class: 'actions' }, subscribeButton(`/feeds/clubs/${id}.ics`))),
    hint,
    ...result === null ? [] : [h('p', { class: 'problem', role: 'alert' }, result)],
    membershipPart(club, mine),
    ...account ? unverified(account) : [],
    ...organizes(mine)
      ? [h('p', { class: 'actions start' },
          h('a', { class: 'button', href: `/clubs/${id}/members` }, 'Members and requests'),
          actionButton('Edit the page', () => editClub(id)))]
      : [],
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
 * Joins a club for a visitor who pressed the button before they signed in. Returns the message of an error.
 *
 * @param {string} id
 */
async function joinFor (id) {
  try {
    const { club } = await call(client.GET('/club-pages/{id}', { params: { path: { id } } }))
    // In other clubs, the person can write a message before they ask.
    if (club.joining === 'open') notify(await join(club))
    return null
  } catch (error) {
    return wordsOf(error)
  }
}

/** @type {[value: string, label: string][]} */
const JOINING = [
  ['open', 'Everybody can join'], ['request', 'People ask, and the organizers decide'], ['closed', 'Nobody can join'],
]

/** @param {string} id */
async function editClub (id) {
  const page = here()
  // Not the club of the page, which somebody else may have changed.
  const { club } = await call(client.GET('/club-pages/{id}', { params: { path: { id } } }))
  if (here() !== page) return
  const { name, description, imageUrl, joining } = club
  const saved = await openDialog('Edit the page', close => [form({
    fields: [
      ...hasRole('ADMIN') ? [{ name: 'name', label: 'Name', value: name }] : [],
      { name: 'description', label: 'Description', type: 'textarea', value: description },
      { name: 'imageUrl', label: 'Picture', type: 'picture', optional: true, value: imageUrl },
      { name: 'joining', label: 'New members', type: 'select', options: JOINING, value: joining },
    ],
    verb: 'Save',
    cancel: close,
    isEdit: true,
    draft: `club ${id}`,
    async send ({ imageUrl, joining, ...texts }) {
      const body = {
        ...texts,
        ...imageUrl !== undefined && { imageUrl: imageUrl || null },
        ...joining !== undefined && { joining: /** @type {Schemas['Joining']} */ (joining) },
      }
      await call(client.PUT('/club-pages/{id}', { params: { path: { id } }, body }))
      close(true)
    },
  })])
  if (!saved) return
  await refresh()
  notify('The page has been saved.')
}

/**
 * @param {string} title
 * @param {string | false} empty the text for an empty list
 * @param {...Node} content
 */
export const section = (title, empty, ...content) =>
  h('section', {}, h('h2', {}, title), ...empty === false ? content : [nothing(empty)])

import { call, client, loadUser } from '../api.js'
import { EMAILS } from '../config.js'
import { h } from '../dom.js'
import { form } from '../form.js'
import { follow, isSame } from '../live.js'
import { OFFICES, offerPart, ownClubs } from '../membership.js'
import {
  actionButton, eventLine, heading, isOver, lead, nameOf, notify, onDate, portrait, reminder, ROLES, statusBadge,
} from '../parts.js'
import { go, here, refresh } from '../router.js'
import { currentUser } from '../session.js'
import { subscribeToOwnButton } from '../subscribe.js'
import { unverified } from './account.js'
import { section } from './clubs.js'
import { FOLLOWED, listWith } from './events.js'
import { mentorCards } from './mentors.js'

/** The profile, registrations, blog posts and liked mentors of the user. */
export async function mePage () {
  const [{ blogs }, { seats }, { likedMentors }, { reminderHours }, { account }, clubs] = await Promise.all([
    call(client.GET('/blogs/me')),
    call(client.GET('/me/seats')),
    call(client.GET('/mentors/liked')),
    call(client.GET('/me/notifications')),
    call(client.GET('/me/account')),
    ownClubs(),
    // A different tab or an admin may have changed the profile.
    loadUser(),
  ])
  const user = /** @type {NonNullable<ReturnType<typeof currentUser>>} */ (currentUser())
  const liked = new Set(likedMentors.map(({ id }) => id))
  /** The places in line, by the id of the event. */
  const places = new Map(seats.map(({ position, event }) => [event.id, h('span', {}, position)]))
  const coming = nextFirst(seats).filter(({ event }) => !isOver(event)).slice(0, FOLLOWED)
  const hint = coming.length > 0 && follow(coming.map(({ event }) => listWith(event)), async () => {
    const { seats: now } = await call(client.GET('/me/seats'))
    for (const { position, event } of now) places.get(event.id)?.replaceChildren(String(position))
    return isSame(seats, now)
  })
  return [
    h('div', { class: 'profile' },
      portrait(nameOf(user), user.avatar),
      heading(nameOf(user), h('p', { class: 'meta' },
        h('span', { class: 'badge' }, ROLES[user.role]),
        user.club && h('a', { href: `/clubs/${user.club.id}` }, user.club.name),
        h('span', {}, user.email)))),
    ...unverified(account),
    ...hint ? [hint] : [],
    section('My events', seats.length === 0 && "You haven't registered for any events yet.",
      h('ul', { class: 'agenda' }, ...nextFirst(seats).map(({ registeredAt, state, event }) => {
        const { comingCount, ...shown } = event
        return eventLine(shown, h('p', { class: 'meta going' },
          isOver(event) && h('span', { class: 'badge' }, 'Over'),
          state === 'declined' && h('span', { class: 'badge' }, "You can't come"),
          state === 'drawing' && h('span', { class: 'badge' }, 'You take part in the draw'),
          state === 'waiting' && h('span', { class: 'badge draft' }, 'Number ', places.get(event.id), ' in line'),
          h('span', {}, 'registered on ', onDate(registeredAt)),
          state !== 'declined' && reminder(event.date, reminderHours)))
      }))),
    h('p', {}, subscribeToOwnButton()),
    section('My clubs', clubs.length === 0 && "You haven't joined any clubs yet.",
      ...clubs.flatMap(offerPart), h('ul', { class: 'rows' }, ...clubs.map(ownClub))),
    section('My posts', blogs.length === 0 && "You haven't written any posts yet.",
      h('ul', { class: 'rows' }, ...blogs.map(({ id, title, status, createdAt }) => h('li', {},
        h('h3', {}, h('a', { href: `/blogs/${id}` }, title)),
        h('p', { class: 'meta' }, statusBadge(status), onDate(createdAt)))))),
    h('p', {}, h('a', { class: 'button primary', href: '/me/submit' }, 'Write a post')),
    section('Mentors I like', likedMentors.length === 0 && "You haven't liked any mentors yet.",
      mentorCards(likedMentors, liked, 'h3').element),
    h('p', {}, h('a', { class: 'button', href: '/me/settings' }, 'Settings')),
  ]
}

/** @type {Record<string, string>} */
const STATES = { requested: 'You have asked to join', refused: 'The organizers said no' }

/** @param {import('../membership.js').OwnClub} club */
function ownClub ({ clubId, name, state, office, news, since }) {
  const params = { path: { clubId } }
  return h('li', {},
    h('div', {},
      h('h3', { id: `club-${clubId}` }, h('a', { href: `/clubs/${clubId}` }, name)),
      h('p', { class: 'meta' },
        (STATES[state] ?? office) && h('span', { class: 'badge' }, STATES[state] ?? (office && OFFICES[office])),
        h('span', {}, 'since ', onDate(since)))),
    h('p', { class: 'actions' },
      office && h('a', { class: 'button', href: `/clubs/${clubId}/members` }, 'Members'),
      state === 'member' && EMAILS && actionButton(`${news ? 'Stop' : 'Get'} emails about events`, async () => {
        await call(client.PUT('/me/clubs/{clubId}', { params, body: { news: !news } }))
        await refresh()
        notify(news ? `You get no more emails about events of “${name}”.` : `You get emails about events of “${name}”.`)
      }, { 'aria-describedby': `club-${clubId}` })))
}

/**
 * Events to come, earliest first, and then past events, latest first.
 *
 * @param {import('community-platform-client').Schemas['OwnSeat'][]} seats
 */
function nextFirst (seats) {
  const byDate = seats.toSorted((one, other) => one.event.date.localeCompare(other.event.date))
  return [...byDate.filter(({ event }) => !isOver(event)), ...byDate.filter(({ event }) => isOver(event)).reverse()]
}

/** The form that submits a blog post. */
export function submitPage () {
  return [h('div', { class: 'narrow' },
    heading('Write a post', lead('Only you and the admins can see your post until an admin publishes it.')),
    form({
      fields: [
        { name: 'title', label: 'Title' },
        { name: 'content', label: 'Text', type: 'textarea', hint: 'Plain text. An empty line starts a paragraph.' },
        { name: 'imageUrl', label: 'Picture', type: 'picture', optional: true },
      ],
      verb: 'Submit',
      draft: 'new post',
      async send ({ title = '', content = '', imageUrl }, once) {
        const page = here()
        const body = { title, content, ...imageUrl && { imageUrl } }
        await call(client.POST('/blogs/submit', { params: { header: once }, body }))
        if (here() === page) await go('/me')
        notify('Thank you. An admin will review your post soon.')
      },
    }))]
}

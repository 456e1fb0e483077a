import { call, client } from '../api.js'
import { h, svg } from '../dom.js'
import { follow, isSame } from '../live.js'
import { actionButton, heading, inColour, lead, nothing, notify, outside, portrait } from '../parts.js'
import { go, here } from '../router.js'
import { currentUser } from '../session.js'

/** @import { Schemas } from 'community-platform-client' */

export async function mentorsPage () {
  const [{ mentors }, liked] = await Promise.all([call(client.GET('/mentors')), likedMentors()])
  const cards = mentorCards(mentors, liked)
  const hint = follow(['/mentors'], async () => cards.update((await call(client.GET('/mentors'))).mentors))
  return [
    heading('Mentors', lead('Experienced people, happy to help.')),
    hint,
    mentors.length === 0 ? nothing('There are no mentors yet.') : cards.element,
  ]
}

/** The ids of the mentors that the user likes. */
export async function likedMentors () {
  if (!currentUser()) return new Set()
  const { likedMentors } = await call(client.GET('/mentors/liked'))
  return new Set(likedMentors.map(({ id }) => id))
}

/**
 * Cards of mentors. `update` shows new numbers, and returns whether these are all changes.
 *
 * @param {Schemas['MentorProfile'][]} mentors
 * @param {Set<unknown>} liked
 * @param {'h2' | 'h3'} [level]
 */
export function mentorCards (mentors, liked, level) {
  const cards = mentors.map(mentor => ({ id: mentor.id, ...mentorCard(mentor, liked, level) }))
  return {
    element: h('ul', { class: 'people' }, ...cards.map(({ element }) => element)),
    /** @param {Schemas['MentorProfile'][]} next */
    update (next) {
      for (const { id, show } of cards) {
        const now = next.find(mentor => mentor.id === id)
        if (now) show(now.likeCount)
      }
      return isSame(mentors, next)
    },
  }
}

/**
 * Shows a mentor with a like button. `show` shows the number of likes.
 *
 * @param {Schemas['MentorProfile']} mentor
 * @param {Set<unknown>} liked
 * @param {'h2' | 'h3'} [level]
 */
function mentorCard ({ id, name, expertise, imageUrl, networkUrl, club, likeCount }, liked, level = 'h2') {
  const likes = h('span')
  /** @param {number} number */
  const show = number => likes.replaceChildren(String(number),
    h('span', { class: 'unseen' }, ` ${number === 1 ? 'like' : 'likes'} for ${name}`))
  const heart = actionButton(
    svg('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true' },
      svg('path', { d: 'M12 20.5C3 14 2.5 9.5 3.6 7A5 5 0 0 1 12 6a5 5 0 0 1 8.4 1c1.1 2.5.6 7-8.4 13.5z' })),
    async button => {
      if (!currentUser()) return go(`/sign-in?${new URLSearchParams({ to: here() })}`)
      const response = await call(client.POST('/mentors/{mentorId}/like', { params: { path: { mentorId: id } } }))
      button.ariaPressed = String(response.liked)
      show(response.likeCount)
      notify(response.liked ? `You like ${name}.` : `You no longer like ${name}.`)
    },
    { class: 'heart', 'aria-pressed': String(liked.has(id)) })
  heart.append(likes)
  show(likeCount)
  const element = inColour(club.name, h('li', { class: 'person' },
    portrait(name, imageUrl),
    h('div', {},
      h(level, {}, name),
      h('p', {}, expertise),
      h('p', { class: 'meta' }, h('span', { class: 'club' }, club.name), outside(networkUrl, 'Profile'))),
    heart))
  return { element, show }
}

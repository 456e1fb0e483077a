import { ApiError, call, client } from '../api.js'
import { EMAILS } from '../config.js'
import { h } from '../dom.js'
import { form } from '../form.js'
import { follow } from '../live.js'
import { OFFICES } from '../membership.js'
import {
  actionButton, confirmed, count, heading, inColour, lead, notify, onDate, openDialog, table,
} from '../parts.js'
import { refresh } from '../router.js'
import { currentUser, hasRole } from '../session.js'
import { section } from './clubs.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Visit } from '../router.js' */
/** @typedef {Schemas['ClubMember']} Member */

/** @type {[value: string, label: string]} */
const DEPUTY = ['deputy', 'Deputy: decides on requests and edits events']
/** @type {[value: string, label: string]} */
const HEAD = ['head', 'Head: also chooses the deputies. The present head becomes a deputy']

/**
 * Anybody can sign up with an address, so an organizer must not take somebody for its owner.
 *
 * @param {boolean} isEmailVerified
 */
const unverified = isEmailVerified =>
  isEmailVerified || !EMAILS ? [] : [h('span', { class: 'badge draft' }, 'Address not verified')]

/**
 * The people of a club, for its organizers: who asks to join, and who is a member.
 *
 * @param {Visit} visit
 */
export async function membersPage ({ parts: [id = ''] }) {
  const load = () => call(client.GET('/club-pages/{id}/members', { params: { path: { id } } }))
  const { club, leads, requestCount, requests, members } = await load()
  const hint = follow(['/club-pages'], async () => {
    const now = await load()
    return JSON.stringify([now.requests, now.members]) === JSON.stringify([requests, members])
  })
  const hasHead = members.some(({ office }) => office === 'head')
  return [
    heading(club.name, lead(count(members.length, 'member'))),
    hint,
    ...hasHead ? [] : [h('p', { class: 'unverified' }, 'This club has no head. Offer a member the office.')],
    section(requestCount > requests.length ? `The oldest ${requests.length} of ${requestCount} requests` : 'Requests',
      requests.length === 0 && 'Nobody is asking to join.',
      h('ul', { class: 'rows' }, ...requests.map(({ userId, name, email, isEmailVerified, message, askedAt }) =>
        h('li', {},
          h('div', {},
            h('h3', { id: `request-${userId}` }, name),
            h('p', { class: 'meta' }, h('span', {}, email), ...unverified(isEmailVerified),
              h('span', {}, 'asked on ', onDate(askedAt))),
            message && h('blockquote', {}, h('p', {}, message))),
          h('p', { class: 'actions' },
            actionButton('Accept', async () => {
              await decide(userId, { state: 'member' })
              await refresh()
              notify(`${name} is a member now.`)
            }, { class: 'primary', 'aria-describedby': `request-${userId}` }),
            actionButton('Refuse', () => refuse(userId, name, 'Refuse', 'has been refused'),
              { 'aria-describedby': `request-${userId}` })))))),
    section('Members', members.length === 0 && 'This club has no members yet.',
      table('Members', ['Person', 'Office', 'Action'], members.map(row))),
    h('p', {}, h('a', { href: `/clubs/${id}` }, 'Page of the club')),
  ].map(element => inColour(club.name, element))

  /**
   * @param {string} userId
   * @param {Schemas['MemberChange']} body
   */
  function decide (userId, body) {
    return call(client.PUT('/club-pages/{id}/members/{userId}', { params: { path: { id, userId } }, body }))
  }

  /**
   * @param {string} userId
   * @param {string} name
   * @param {string} verb
   * @param {string} done
   */
  async function refuse (userId, name, verb, done) {
    const isDone = await openDialog(`${verb} ${name}?`, close => [form({
      fields: [{
        name: 'reason',
        label: 'Reason',
        type: 'textarea',
        optional: true,
        hint: `${name} sees it on the page of the club.`,
      }],
      verb,
      cancel: close,
      async send ({ reason }) {
        // The service would remove a member whom a different organizer has accepted since this page was loaded.
        if (verb === 'Refuse' && (await load()).members.some(member => member.userId === userId)) {
          throw new ApiError(`${name} has been accepted already.`)
        }
        await decide(userId, { state: 'refused', ...reason && { reason } })
        close(true)
      },
    })])
    if (!isDone) return
    await refresh()
    notify(`${name} ${done}.`)
  }

  /** @param {Member} member */
  function row ({ userId, name, email, isEmailVerified, office, offered, offeredUntil, since }) {
    const isOwn = userId === currentUser()?.id
    const officeWords = office ? OFFICES[office] : 'Member'
    return [
      h('div', {}, name, h('span', { class: 'meta' }, h('span', {}, email), ...unverified(isEmailVerified))),
      h('div', {}, officeWords,
        h('span', { class: 'meta' }, offered && offeredUntil
          ? h('span', {}, `offered: ${OFFICES[offered]?.toLowerCase()}, until `, onDate(offeredUntil))
          : h('span', {}, 'since ', onDate(since)))),
      h('div', { class: 'actions start' },
        leads && offered && actionButton('Withdraw the offer', async () => {
          await decide(userId, { office: null })
          await refresh()
          notify('The offer has been withdrawn.')
        }, { 'aria-label': `Withdraw the offer to ${name}` }),
        leads && !offered && office !== 'head' && actionButton('Offer an office', () => offer(userId, name, office),
          { 'aria-label': `Offer an office to ${name}` }),
        (leads || isOwn) && office === 'deputy' && actionButton('End the office', async () => {
          if (!await confirmed(`End the office of ${name}?`, `${name} stays a member.`, 'End the office')) return
          await decide(userId, { office: null })
          await refresh()
          notify(`${name} is a plain member now.`)
        }, { 'aria-label': `End the office of ${name}` }),
        !isOwn && (leads ? office !== 'head' || hasRole('ADMIN') : !office) &&
          actionButton('Remove', () => refuse(userId, name, 'Remove', 'is no longer a member'),
            { class: 'danger', 'aria-label': `Remove ${name}` })),
    ]
  }

  /**
   * @param {string} userId
   * @param {string} name
   * @param {Member['office']} office
   */
  async function offer (userId, name, office) {
    const isDone = await openDialog(`Offer an office to ${name}`, close => [form({
      fields: [{
        name: 'office',
        label: 'Office',
        type: 'select',
        options: office === 'deputy' ? [HEAD] : [DEPUTY, HEAD],
        hint: `The office begins when ${name} accepts, within 14 days.`,
      }],
      verb: 'Offer',
      cancel: close,
      async send ({ office }) {
        await decide(userId, { office: /** @type {'deputy' | 'head'} */ (office) })
        close(true)
      },
    })])
    if (!isDone) return
    await refresh()
    notify(`${name} can accept the office now.`)
  }
}

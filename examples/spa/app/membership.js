// Shows a user their own membership of a club, with buttons to change it. The pages of the club and of the user use it.
import { call, client, signInWith } from './api.js'
import { h } from './dom.js'
import { form } from './form.js'
import { actionButton, confirmed, isPast, notify, onDate, openDialog } from './parts.js'
import { go, refresh } from './router.js'
import { currentUser, hasRole, signInToDo } from './session.js'

/** @import { Schemas } from 'community-platform-client' */
/** @typedef {Schemas['OwnMembership']} OwnClub */
/** @typedef {Pick<Schemas['ClubPage'], 'id' | 'name' | 'joining'>} Club */

/** @type {Record<string, string>} */
export const OFFICES = { head: 'Head', deputy: 'Deputy' }

/** How long a refusal holds, in milliseconds. */
const REFUSAL_MS = 7 * 24 * 3_600_000

/** The clubs of the user; none for a visitor. */
export async function ownClubs () {
  if (!currentUser()) return []
  const { clubs } = await call(client.GET('/me/clubs'))
  return clubs
}

/**
 * Tells whether the user may decide who is in a club.
 *
 * @param {OwnClub | undefined} own
 */
export const organizes = own => hasRole('ADMIN') || Boolean(own?.office)

/**
 * Joins a club, or asks to join. Returns a message about the result.
 *
 * @param {Club} club
 * @param {string} [message]
 */
export async function join ({ id, name }, message) {
  const params = { path: { clubId: id } }
  const { club } = await call(client.PUT('/me/clubs/{clubId}', { params, body: { ...message && { message } } }))
  return club.state === 'member'
    ? `Welcome to “${name}”.`
    : `You have asked to join “${name}”. This page will tell you the decision.`
}

/**
 * The state of the user in a club, with the buttons that change it.
 *
 * @param {Club} club
 * @param {OwnClub | undefined} own
 */
export function membershipPart (club, own) {
  return h('div', { class: 'seat' }, ...content())

  function content () {
    if (own?.state === 'member') {
      return [h('span', { class: 'words' }, wordsOfMember(own)), ...offerPart(own), leave(own)]
    }
    if (own?.state === 'requested') {
      return [h('span', { class: 'words' }, 'You have asked to join. The organizers have not decided yet.'),
        actionButton('Withdraw', async () => {
          await call(client.DELETE('/me/clubs/{clubId}', { params: { path: { clubId: club.id } } }))
          await refresh()
          notify('Your request has been withdrawn.')
        })]
    }
    if (own?.state === 'refused') return refused(own)
    return [joinButton()]
  }

  /** @param {OwnClub} own */
  function refused ({ since, reason }) {
    const from = new Date(Date.parse(since) + REFUSAL_MS).toISOString()
    const isOpen = isPast(from)
    return [
      h('span', { class: 'words' }, 'The organizers said no', reason ? `: “${reason}”` : '.',
        ...isOpen ? [] : [' You can ask again on ', onDate(from), '.']),
      isOpen && joinButton(),
    ]
  }

  function joinButton () {
    if (club.joining === 'closed') return h('span', {}, 'This club takes no new members.')
    const isOpen = club.joining === 'open' && own?.state !== 'refused'
    return actionButton(isOpen ? 'Join' : 'Ask to join', async () => {
      if (!currentUser()) return go(signInToDo(`/clubs/${club.id}`))
      const words = isOpen ? await join(club) : await ask(club)
      if (!words) return
      await refresh()
      notify(words)
    }, { class: 'primary' })
  }
}

/**
 * Asks a user for a message to the organizers. Resolves to the message of the result.
 *
 * @param {Club} club
 * @returns {Promise<string | undefined>}
 */
const ask = club => openDialog(`Ask to join “${club.name}”`, close => [form({
  fields: [{
    name: 'message',
    label: 'Message',
    type: 'textarea',
    optional: true,
    hint: 'The organizers see it, together with your name and your email address.',
  }],
  verb: 'Ask to join',
  cancel: close,
  draft: `join ${club.id}`,
  async send ({ message }) {
    close(await join(club, message))
  },
})])

/** @param {OwnClub} own */
function wordsOfMember ({ office, isListed }) {
  const state = office ? `✓ You organize this club: ${OFFICES[office]?.toLowerCase()}.` : "✓ You're a member."
  return isListed && !office
    ? `${state} Your name and email address are public, because this is your main club.`
    : state
}

/** @param {OwnClub} own */
function leave ({ clubId, name, office }) {
  return actionButton('Leave', async () => {
    const text = office === 'head'
      ? 'The club then has no head, and its deputies or the admins decide who is next. You cannot undo this.'
      : office
        ? 'You can then no longer organize its events.'
        : 'You can come back as the club allows it.'
    if (!await confirmed(`Leave “${name}”?`, text, 'Leave', 'Stay')) return
    await call(client.DELETE('/me/clubs/{clubId}', { params: { path: { clubId } } }))
    await refresh()
    notify(`You have left “${name}”.`)
  }, { 'aria-label': `Leave ${name}` })
}

/**
 * An office that the user can accept or decline.
 *
 * @param {OwnClub} own
 */
export function offerPart ({ clubId, name, offered, offeredUntil }) {
  if (!offered || !offeredUntil) return []
  /** @param {boolean} accept */
  const reply = async accept => {
    const params = { path: { clubId } }
    const body = { accept, office: offered }
    const { token } = await call(client.PUT('/me/clubs/{clubId}/office', { params, body }))
    // The token has the new role.
    await signInWith(token)
    await refresh()
    notify(accept ? `You organize “${name}” now.` : 'You have declined the offer.')
  }
  return [h('p', { class: 'unverified' },
    `You can become ${OFFICES[offered]?.toLowerCase()} of “${name}”, until `, onDate(offeredUntil),
    '. Your name, picture and email address are then public. ',
    actionButton('Accept', () => reply(true), { class: 'primary', 'aria-label': `Accept the office in ${name}` }),
    actionButton('Decline', () => reply(false), { 'aria-label': `Decline the office in ${name}` }))]
}

import { ApiError, call, client } from '../api.js'
import { h } from '../dom.js'
import { follow } from '../live.js'
import { actionButton, atTime, count, heading, inColour, lead, nothing, table } from '../parts.js'
import { listWith, ownSeat } from './events.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Visit } from '../router.js' */
/** @typedef {Schemas['Draw']} Draw */

/**
 * The draw of the seats of an event, which everybody can check.
 *
 * @param {Visit} visit
 */
export async function drawPage ({ parts: [id = ''] }) {
  const params = { path: { id } }
  const [{ event }, { draw }, own] = await Promise.all([
    call(client.GET('/agenda/{id}', { params })), call(client.GET('/agenda/{id}/draw', { params })), ownSeat(id),
  ])
  const hint = follow([listWith(event)], async () => {
    const now = await call(client.GET('/agenda/{id}/draw', { params }))
    return JSON.stringify(now.draw) === JSON.stringify(draw)
  })
  const { drawAt, drawnAt, seed, commitment, order } = draw
  return [
    heading(event.title, lead('The draw of the seats')),
    hint,
    h('p', { class: 'lead' }, drawnAt ? 'Drawn on ' : 'Will be drawn on ', atTime(drawnAt ?? drawAt), '.'),
    ownPart(draw, own),
    h('h2', {}, 'Nobody can choose a lot'),
    h('p', {}, 'Before anybody took part, the service chose a random seed and published its SHA-256, the commitment. ' +
      'The lot of a registration is the SHA-256 of the seed, a space and the id of the registration. ' +
      'The smallest lots come first.'),
    h('dl', { class: 'facts hashes' },
      h('dt', {}, 'Commitment'), h('dd', {}, h('code', {}, commitment)),
      h('dt', {}, 'Seed'), h('dd', {}, seed ? h('code', {}, seed) : 'It is published with the draw.'),
      ...own ? [h('dt', {}, 'Your registration'), h('dd', {}, h('code', {}, own.registrationId))] : []),
    ...order && seed
      ? result({ ...draw, order, seed }, own)
      : [h('p', {}, 'Note the commitment if you want to check the draw later: it must not change.')],
    h('p', {}, h('a', { href: `/events/${id}` }, '← Page of the event')),
  ].map(element => inColour(event.club.name, element))
}

/**
 * Tells whether the user takes part in the draw, and the result of the draw for the user.
 *
 * @param {Draw} draw
 * @param {Schemas['OwnSeat'] | undefined} own
 */
function ownPart ({ order }, own) {
  const place = own && order ? order.indexOf(own.registrationId) + 1 : 0
  if (place > 0) {
    return h('p', { class: 'seat' }, `You are number ${place} of ${order?.length}`,
      own?.state === 'seated' ? ', and have a seat.' : own?.position ? `, and number ${own.position} in line.` : '.')
  }
  return h('p', { class: 'seat' }, own?.state === 'drawing'
    ? '✓ You take part.'
    : own && own.state !== 'declined' ? 'You are registered, but not part of the draw.' : 'You do not take part.')
}

/**
 * The order of the draw, and a button that computes it again in the browser.
 *
 * @param {Draw & { order: string[], seed: string }} draw
 * @param {Schemas['OwnSeat'] | undefined} own
 */
function result ({ commitment, seed, order, seats }, own) {
  const verdict = h('p', { role: 'status' })
  return [
    h('p', { class: 'actions start' }, actionButton('Compute it again', async () => {
      verdict.replaceChildren(await check({ commitment, seed, order }))
    })),
    verdict,
    h('h2', {}, 'The order'),
    order.length === 0
      ? nothing('Nobody took part.')
      : table(count(order.length, 'person', 'people'), ['Number', 'Registration'], order.map((id, index) => [
        h('div', {}, String(index + 1),
          h('span', { class: 'meta' }, h('span', {}, seats === null || index < seats ? 'Seat' : 'In line'))),
        h('div', {}, h('code', {}, id), ' ', id === own?.registrationId && h('span', { class: 'badge' }, 'You')),
      ])),
  ]
}

/**
 * Computes a draw. Returns what has been found.
 *
 * @param {{ commitment: string, seed: string, order: string[] }} draw
 */
async function check ({ commitment, seed, order }) {
  if (!crypto.subtle) throw new ApiError('This browser computes hashes only on pages with HTTPS.')
  if (await sha256(seed) !== commitment) return '✗ The seed does not fit the commitment.'
  const lots = await Promise.all(order.map(id => sha256(`${seed} ${id}`)))
  return lots.every((lot, place) => place === 0 || /** @type {string} */ (lots[place - 1]) < lot)
    ? '✓ Your browser has computed the same: the seed fits the commitment, and everybody has the place of their lot.'
    : '✗ The order is not the order of the lots.'
}

/**
 * Returns the SHA-256 of a text as hexadecimal digits.
 *
 * @param {string} text
 */
async function sha256 (text) {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return [...new Uint8Array(digest)].map(byte => byte.toString(16).padStart(2, '0')).join('')
}

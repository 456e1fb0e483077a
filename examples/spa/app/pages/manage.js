import { call, client, download } from '../api.js'
import { h } from '../dom.js'
import { form } from '../form.js'
import {
  actionButton, atTime, calendarLeaf, confirmed, count, heading, inColour, lead, nothing, notify, onDate, openDialog,
  REPLACED, table,
} from '../parts.js'
import { refresh } from '../router.js'
import { hasRole } from '../session.js'
import { adminNav } from '../shell.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Visit } from '../router.js' */
/** @typedef {{ event: Schemas['Event'], registrations: number }} Row */
/** @typedef {Schemas['NewEvent']} NewEvent */

/** The events of the user's club. */
export async function ownEventsPage () {
  const { events } = await call(client.GET('/events/mine'))
  return [
    heading('My events', lead("Your club's events, latest first.")),
    hasRole('CLUB_HEAD') && h('p', {},
      h('button', { type: 'button', class: 'primary', onclick: () => editEvent() }, 'New event')),
    list(events.map(event => ({ event, registrations: event.registrations.length }))),
  ].filter(node => node !== false)
}

/** The events of all clubs, for admins. */
export async function allEventsPage () {
  const { events } = await call(client.GET('/events', { params: { query: { limit: '1000' } } }))
  return [
    adminNav(),
    heading('Events', lead('Events of all clubs. Only club heads can add events.')),
    list(events.map(event => ({ event, registrations: event.registrationCount }))),
  ]
}

/** @param {Row[]} rows */
function list (rows) {
  if (rows.length === 0) return nothing('There are no events yet.')
  return h('ul', { class: 'agenda' }, ...rows.map(({ event, registrations }) => {
    const { id, title, date, club } = event
    const describedBy = { 'aria-describedby': `event-${id}` }
    return inColour(club.name, h('li', {},
      calendarLeaf(date),
      h('div', {},
        h('h2', { id: `event-${id}` }, title),
        h('p', { class: 'meta' }, h('span', { class: 'club' }, club.name), atTime(date))),
      h('p', { class: 'actions' },
        h('a', { class: 'button', href: `/manage/${id}`, ...describedBy }, count(registrations, 'registration')),
        h('button', { type: 'button', onclick: () => editEvent(event), ...describedBy }, 'Edit'),
        actionButton('Delete', () => deleteEvent(event, registrations), { class: 'danger', ...describedBy }))))
  }))
}

/** @param {Schemas['Event']} [event] the event to change; if missing, creates an event */
async function editEvent (event) {
  const saved = await openDialog(event ? 'Edit event' : 'New event', close => [form({
    fields: [
      { name: 'title', label: 'Title', value: event?.title },
      { name: 'description', label: 'Description', type: 'textarea', value: event?.description },
      { name: 'data', label: 'Date and time', type: 'datetime-local', value: event && toLocal(event.date) },
      {
        name: 'imageUrl',
        label: 'Picture',
        type: 'picture',
        value: event?.imageUrl,
        hint: event && REPLACED,
      },
    ],
    verb: 'Save',
    cancel: close,
    draft: event ? `event ${event.id}` : 'new event',
    isEdit: Boolean(event),
    async send ({ data, ...values }) {
      const body = { ...values, ...data !== undefined && { data: data && fromLocal(data, event?.date) } }
      if (event) await call(client.PUT('/events/{id}', { params: { path: { id: event.id } }, body }))
      else await call(client.POST('/events', { body: /** @type {NewEvent} */ (body) }))
      close(values.title ?? event?.title)
    },
  })])
  if (!saved) return
  await refresh()
  notify(`“${saved}” has been saved.`)
}

/**
 * Converts a timestamp to local time for an input, for example `2026-01-31T09:30:00.000`.
 *
 * @param {string} date
 */
const toLocal = date => new Date(Date.parse(date) - offsetAt(date)).toISOString().slice(0, -1)

/** @param {string} date */
const offsetAt = date => new Date(date).getTimezoneOffset() * 60_000

/**
 * Converts a local time to a timestamp. When clocks are set back, an hour occurs twice. The offset of the previous date
 * then decides, if it fits.
 *
 * @param {string} local
 * @param {string} [former]
 */
function fromLocal (local, former) {
  const date = new Date(local).toISOString()
  if (!former) return date
  const same = new Date(Date.parse(`${local}Z`) + offsetAt(former)).toISOString()
  return toLocal(same) === toLocal(date) ? same : date
}

/**
 * @param {Schemas['Event']} event
 * @param {number} registrations
 */
async function deleteEvent ({ id, title }, registrations) {
  const text = `This also deletes ${count(registrations, 'registration')}.`
  if (!await confirmed(`Delete “${title}”?`, text, 'Delete')) return
  await call(client.DELETE('/events/{id}', { params: { path: { id } } }))
  await refresh()
  notify(`“${title}” has been deleted.`)
}

/**
 * The registrations for an event.
 *
 * @param {Visit} visit
 */
export async function attendeesPage ({ parts: [id = ''] }) {
  const { event, registrations } = await call(client.GET('/events/{id}/registrations', { params: { path: { id } } }))
  return [
    heading(event.title,
      h('p', { class: 'lead' }, atTime(event.date), ` · ${count(registrations.length, 'registration')}`)),
    registrations.length === 0
      ? nothing('No one has registered yet.')
      : table('Registrations', ['Name', 'Email', 'Registered on'],
        registrations.map(({ name, email, registeredAt }) => [name, email, onDate(registeredAt)])),
    registrations.length > 0 && h('p', {}, actionButton('Download as a spreadsheet', () => download(
      client.GET('/exports/events/{id}/registrations.csv', { params: { path: { id } }, parseAs: 'blob' }),
      'registrations.csv')), ' ', actionButton('Email everyone', () => writeToAll(id, event.title))),
    h('p', {}, hasRole('ADMIN')
      ? h('a', { href: '/admin/events' }, '← All events')
      : h('a', { href: '/manage' }, '← My events')),
  ].filter(node => node !== false)
}

/**
 * Lets the user write an email to everyone registered for an event.
 *
 * @param {string} id
 * @param {string} title
 */
async function writeToAll (id, title) {
  const subject = await openDialog(`Email everyone registered for ${title}`, close => [form({
    fields: [
      { name: 'subject', label: 'Subject' },
      { name: 'text', label: 'Text', type: 'textarea', hint: 'Replies go to your email address.' },
    ],
    verb: 'Send',
    cancel: close,
    draft: `message ${id}`,
    async send ({ subject = '', text = '' }) {
      await call(client.POST('/me/events/{id}/message', { params: { path: { id } }, body: { subject, text } }))
      close(subject)
    },
  })])
  if (subject) notify(`“${subject}” is being sent.`)
}

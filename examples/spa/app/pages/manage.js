import { call, client, download } from '../api.js'
import { h } from '../dom.js'
import { form } from '../form.js'
import {
  actionButton, atTime, calendarLeaf, confirmed, count, heading, inColour, lead, nothing, notify, onDate, openDialog,
  REPLACED, table,
} from '../parts.js'
import { here, refresh } from '../router.js'
import { draftOf, hasRole, keepDraft } from '../session.js'
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
        h('h2', { id: `event-${id}` }, h('a', { href: `/events/${id}` }, title)),
        h('p', { class: 'meta' }, h('span', { class: 'club' }, club.name), atTime(date))),
      h('p', { class: 'actions' },
        h('a', { class: 'button', href: `/manage/${id}`, ...describedBy }, count(registrations, 'registration')),
        actionButton('Edit', async () => {
          const page = here()
          // The list of seats also has the online link.
          const { event: details } = await call(client.GET('/agenda/{id}/seats', { params: { path: { id } } }))
          if (here() === page) editEvent(event, details)
        }, describedBy),
        h('button', { type: 'button', onclick: () => repeatEvent(event), ...describedBy }, 'Repeat'),
        actionButton('Delete', () => deleteEvent(event, registrations), { class: 'danger', ...describedBy }))))
  }))
}

/**
 * @param {Schemas['Event']} [event] the event to change; if missing, creates an event
 * @param {Schemas['ManagedEvent']} [details]
 */
async function editEvent (event, details) {
  // A second try after a wrong end or number of seats changes the event that the first try has created.
  let current = event
  let isSent = false
  const draft = () => current ? `event ${current.id}` : 'new event'
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
      {
        name: 'endsAt',
        label: 'End',
        type: 'datetime-local',
        optional: true,
        value: details?.endsAt && toLocal(details.endsAt),
        hint: `An event without an end lasts two hours. ${event ? 'If you change the date, the end moves along.' : ''}`,
      },
      { name: 'place', label: 'Place', optional: true, value: details?.place },
      {
        name: 'onlineUrl',
        label: 'Online link',
        type: 'url',
        optional: true,
        value: details?.onlineUrl,
        hint: 'Only people with a seat see it.',
      },
      {
        name: 'capacity',
        label: 'Seats',
        type: 'number',
        optional: true,
        value: details?.capacity,
        hint: 'When all seats are taken, new people wait in line. Leave it empty for no limit.',
      },
    ],
    verb: 'Save',
    cancel: close,
    draft,
    isEdit: Boolean(event),
    async send ({ data, endsAt, place, onlineUrl, capacity, ...values }) {
      const body = { ...values, ...data !== undefined && { data: data && fromLocal(data, event?.date) } }
      isSent = true
      const isNew = !current
      if (!current) {
        const typed = draftOf(draft())
        keepDraft(draft(), null)
        current = (await call(client.POST('/events', { body: /** @type {NewEvent} */ (body) }))).event
        keepDraft(draft(), typed)
      }
      const params = { path: { id: current.id } }
      if (!isNew && Object.keys(body).length > 0) await call(client.PUT('/events/{id}', { params, body }))
      const changes = {
        ...endsAt !== undefined && { endsAt: endsAt ? fromLocal(endsAt, details?.endsAt ?? undefined) : null },
        ...place !== undefined && { place: place || null },
        ...onlineUrl !== undefined && { onlineUrl: onlineUrl || null },
        ...capacity !== undefined && { capacity: capacity === '' ? null : Number(capacity) },
      }
      if (event ? Object.keys(changes).length > 0 : Object.values(changes).some(value => value !== null)) {
        await call(client.PUT('/agenda/{id}', { params, body: changes }))
      }
      close(values.title ?? event?.title)
    },
  })])
  // A part may be saved, although the form was refused.
  if (isSent) await refresh()
  if (saved) notify(`“${saved}” has been saved.`)
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
 * Creates copies of an event, a week or more apart.
 *
 * @param {Schemas['Event']} event
 */
async function repeatEvent ({ id, title, date }) {
  const copies = await openDialog(`Repeat “${title}”`, close => [form({
    fields: [
      {
        name: 'weeks',
        label: 'How often',
        type: 'select',
        options: [['1', 'Every week'], ['2', 'Every two weeks'], ['4', 'Every four weeks']],
      },
      // The service gets a date for each, so its errors name this field.
      { name: 'dates', label: 'How many more times', type: 'number', value: 5, hint: 'Up to 52.' },
    ],
    verb: 'Create',
    cancel: close,
    draft: `series ${id}`,
    async send ({ weeks, dates: times }) {
      const first = new Date(date)
      const dates = Array.from({ length: Math.min(53, Number(times) || 0) }, (_, place) => {
        const next = new Date(first)
        // The local time stays the same when clocks change.
        next.setDate(first.getDate() + 7 * Number(weeks) * (place + 1))
        return next.toISOString()
      })
      const { events } = await call(client.POST('/agenda/{id}/copies', { params: { path: { id } }, body: { dates } }))
      close(events.length)
    },
  })])
  if (!copies) return
  await refresh()
  notify(`${count(copies, 'event has', 'events have')} been created.`)
}

/** @type {Record<string, string>} */
const STATES = { seated: 'Comes', waiting: 'Waits', declined: "Can't come" }

/**
 * The people who are registered for an event, with their seats.
 *
 * @param {Visit} visit
 */
export async function attendeesPage ({ parts: [id = ''] }) {
  const { event, seats } = await call(client.GET('/agenda/{id}/seats', { params: { path: { id } } }))
  const come = seats.filter(({ state }) => state === 'seated').length
  const wait = seats.filter(({ state }) => state === 'waiting').length
  const declined = seats.length - come - wait
  return [
    heading(event.title, h('p', { class: 'lead' }, atTime(event.date), [
      ` · ${count(seats.length, 'registration')}`,
      event.capacity === null
        ? count(come, 'person comes', 'people come')
        : `${come} of ${count(event.capacity, 'seat')} taken`,
      declined > 0 && `${declined} can't come`,
      wait > 0 && `${count(wait, 'person waits', 'people wait')}`,
    ].filter(Boolean).join(' · '))),
    seats.length === 0
      ? nothing('No one has registered yet.')
      : table('Registrations', ['Name', 'State', 'Email', 'Registered on', 'Action'],
        seats.map(({ registrationId, name, email, registeredAt, state, position }) => [
          name, `${STATES[state]}${position === null ? '' : ` (number ${position})`}`, email, onDate(registeredAt),
          actionButton('Take off', async () => {
            const text = 'The registration is deleted. An email tells the person, if they get emails about events.'
            if (!await confirmed(`Take ${name} off the list?`, text, 'Take off')) return
            const params = { path: { id, registrationId } }
            await call(client.DELETE('/agenda/{id}/seats/{registrationId}', { params }))
            await refresh()
            notify(`${name} is off the list.`)
          }, { 'aria-label': `Take off ${name}` }),
        ])),
    seats.length > 0 && h('p', { class: 'actions start' }, actionButton('Download as a spreadsheet', () => download(
      client.GET('/exports/events/{id}/registrations.csv', { params: { path: { id } }, parseAs: 'blob' }),
      'registrations.csv')),
    h('button', { type: 'button', onclick: () => print() }, 'Print'),
    actionButton('Email everyone', () => writeToAll(id, event.title))),
    h('p', {}, h('a', { href: `/events/${id}` }, 'Page of the event'), ' · ', hasRole('ADMIN')
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

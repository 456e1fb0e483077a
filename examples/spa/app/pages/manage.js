import { ApiError, call, client, download } from '../api.js'
import { EMAILS } from '../config.js'
import { h } from '../dom.js'
import { form } from '../form.js'
import { follow, isSame } from '../live.js'
import {
  actionButton, atTime, calendarLeaf, confirmed, count, heading, inColour, isOver, isPast, lead, nothing, notify,
  onDate, openDialog, REPLACED, table, untilTime,
} from '../parts.js'
import { here, refresh } from '../router.js'
import { hasRole } from '../session.js'
import { adminNav } from '../shell.js'
import { listWith } from './events.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Visit } from '../router.js' */
/** @typedef {{ event: Schemas['Event'], registrations: number }} Row */
/** @typedef {Schemas['NewAgendaEvent']} NewEvent */

/** The events of the user's club. */
export async function ownEventsPage () {
  const load = async () => {
    const { events } = await call(client.GET('/events/mine'))
    return events.map(event => ({ event, registrations: event.registrations.length }))
  }
  const rows = await load()
  const { element, update } = list(rows)
  const club = rows[0]?.event.clubId
  return [
    heading('My events', lead("Your club's events, latest first.")),
    hasRole('CLUB_HEAD') && h('p', {},
      h('button', { type: 'button', class: 'primary', onclick: () => editEvent() }, 'New event')),
    club !== undefined &&
      follow([`/agenda?${new URLSearchParams({ club, limit: '100' })}`], async () => update(await load())),
    element,
  ].filter(node => node !== false)
}

/** The events of all clubs, for admins. */
export async function allEventsPage () {
  const load = async () => {
    const { events } = await call(client.GET('/events', { params: { query: { limit: '1000' } } }))
    return events.map(event => ({ event, registrations: event.registrationCount }))
  }
  const { element, update } = list(await load())
  return [
    adminNav(),
    heading('Events', lead('Events of all clubs. Only club heads can add events.')),
    follow(['/events?limit=1000'], async () => update(await load())),
    element,
  ]
}

/**
 * Events with their actions. `update` shows the numbers of registrations, and returns whether these are all changes.
 *
 * @param {Row[]} rows
 */
function list (rows) {
  const links = new Map(rows.map(({ event, registrations }) =>
    [event.id, h('a', { class: 'button', href: `/manage/${event.id}` }, count(registrations, 'registration'))]))
  const element = rows.length === 0
    ? nothing('No events have been created yet.')
    : h('ul', { class: 'agenda' }, ...rows.map(({ event }) => row(event)))
  return {
    element,
    /** @param {Row[]} next */
    update (next) {
      for (const { event, registrations } of next) {
        links.get(event.id)?.replaceChildren(count(registrations, 'registration'))
      }
      const shown = (/** @type {Row[]} */ rows) => rows.map(({ event: { id, title, date } }) => ({ id, title, date }))
      return isSame(shown(rows), shown(next))
    },
  }

  /** @param {Row['event']} event */
  function row ({ id, title, date, club }) {
    const describedBy = { 'aria-describedby': `event-${id}` }
    const link = /** @type {HTMLElement} */ (links.get(id))
    link.setAttribute('aria-describedby', `event-${id}`)
    return inColour(club.name, h('li', {},
      calendarLeaf(date),
      h('div', {},
        h('h2', { id: `event-${id}` }, h('a', { href: `/events/${id}` }, title)),
        h('p', { class: 'meta' }, h('span', { class: 'club' }, club.name), atTime(date))),
      h('p', { class: 'actions' },
        link,
        actionButton('Edit', async () => {
          const page = here()
          // Not the event of the list, which somebody else may have changed. The list of seats has the online link.
          const { event } = await call(client.GET('/agenda/{id}/seats', { params: { path: { id } } }))
          if (here() === page) editEvent(event)
        }, describedBy),
        actionButton('Repeat', () => repeatEvent(id), describedBy),
        actionButton('Delete', () => deleteEvent(id), { class: 'danger', ...describedBy }))))
  }
}

/** @param {Schemas['ManagedEvent']} [event] the event to change; if missing, creates an event */
async function editEvent (event) {
  const saved = await openDialog(event ? 'Edit event' : 'New event', close => [form({
    fields: [
      { name: 'title', label: 'Title', value: event?.title },
      { name: 'description', label: 'Description', type: 'textarea', value: event?.description },
      { name: 'date', label: 'Date and time', type: 'datetime-local', value: event && toLocal(event.date) },
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
        value: event?.endsAt && toLocal(event.endsAt),
        hint: `An event without an end lasts two hours. ${event ? 'If you change the date, the end moves along.' : ''}`,
      },
      { name: 'place', label: 'Place', optional: true, value: event?.place },
      {
        name: 'onlineUrl',
        label: 'Online link',
        type: 'url',
        optional: true,
        value: event?.onlineUrl,
        hint: 'Only people with a seat see it.',
      },
      {
        name: 'capacity',
        label: 'Seats',
        type: 'number',
        optional: true,
        value: event?.capacity,
        hint: 'When all seats are taken, new people wait in line. Leave it empty for no limit.',
      },
      {
        name: 'opensAt',
        label: 'Registration opens',
        type: 'datetime-local',
        optional: true,
        value: event?.opensAt && toLocal(event.opensAt),
        hint: event && 'If you change the date of the event, the times of registration and draw stay as they are.',
      },
      {
        name: 'closesAt',
        label: 'Registration closes',
        type: 'datetime-local',
        optional: true,
        value: event?.closesAt && toLocal(event.closesAt),
        hint: 'Registered people can still cancel, and come after all.',
      },
      {
        name: 'drawAt',
        label: 'Draw',
        type: 'datetime-local',
        optional: true,
        value: event?.drawAt && toLocal(event.drawAt),
        hint: 'The seats are drawn at this time. Everybody who registers from now until then has the same chance.',
      },
    ],
    verb: 'Save',
    cancel: close,
    draft: event ? `event ${event.id}` : 'new event',
    isEdit: Boolean(event),
    async send ({ date, endsAt, place, onlineUrl, capacity, opensAt, closesAt, drawAt, ...values }, once) {
      const body = {
        ...values,
        // Of an empty date, the service says that it is missing.
        date: date ? fromLocal(date, event?.date) : event && date,
        ...endsAt !== undefined && { endsAt: timeOf(endsAt, event?.endsAt) },
        ...opensAt !== undefined && { opensAt: timeOf(opensAt, event?.opensAt) },
        ...closesAt !== undefined && { closesAt: timeOf(closesAt, event?.closesAt) },
        ...drawAt !== undefined && { drawAt: timeOf(drawAt, event?.drawAt) },
        ...place !== undefined && { place: place || null },
        ...onlineUrl !== undefined && { onlineUrl: onlineUrl || null },
        ...capacity !== undefined && { capacity: capacity === '' ? null : Number(capacity) },
      }
      if (event) await call(client.PUT('/agenda/{id}', { params: { path: { id: event.id } }, body }))
      else await call(client.POST('/agenda', { params: { header: once }, body: /** @type {NewEvent} */ (body) }))
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
 * The timestamp of an optional field; `null` if it is empty.
 *
 * @param {string} local
 * @param {string | null | undefined} former
 */
const timeOf = (local, former) => local ? fromLocal(local, former ?? undefined) : null

/** @param {string} id */
async function deleteEvent (id) {
  const { event, seats, cancellation } = await call(client.GET('/agenda/{id}/seats', { params: { path: { id } } }))
  const { title } = event
  const text = [`This also deletes ${count(seats.length, 'registration')}.`, ...toldOf(event, cancellation)].join(' ')
  if (!await confirmed(`Delete “${title}”?`, text, 'Delete')) return
  await call(client.DELETE('/events/{id}', { params: { path: { id } } }))
  await refresh()
  notify(`“${title}” has been deleted.`)
}

/**
 * Says who gets an email about a deletion.
 *
 * @param {Schemas['ManagedEvent']} event
 * @param {Schemas['Reach']} cancellation
 */
function toldOf (event, { reached, notReached }) {
  if (isOver(event) || reached + notReached === 0) return []
  if (reached === 0) return ['Nobody gets an email.']
  const told = count(reached, 'person gets an email', 'people get an email')
  return [notReached === 0 ? `${told}.` : `${told}, ${notReached} cannot be reached.`]
}

/** Maximum number of copies that are created at once. */
const MOST_COPIES = 52

/**
 * Creates copies of an event, a week or more apart. Shows all dates before, and leaves out dates that are past or at
 * which the club has an event, unless the user chooses them.
 *
 * @param {string} id
 */
async function repeatEvent (id) {
  const page = here()
  const { event } = await call(client.GET('/agenda/{id}', { params: { path: { id } } }))
  const { title, date, endsAt, clubId } = event
  const others = await eventsFrom(clubId, date)
  if (here() !== page) return
  const dates = h('ul', { class: 'dates' })
  /** @param {Event} [event] */
  const show = event => {
    // A click on a date changes no other.
    if (event && dates.contains(/** @type {Node} */ (event.target))) return
    const { weeks, dates: times } = Object.fromEntries(new FormData(element))
    dates.replaceChildren(...copiesOf(date, endsAt, Number(weeks), Number(times)).map(copy => {
      const other = others.find(event => event.date === copy.date)
      const problem = isPast(copy.date)
        ? 'in the past'
        : other && (other.title === title ? 'exists already' : `at the same time as “${other.title}”`)
      return h('li', {}, h('label', {},
        h('input', { type: 'checkbox', checked: !problem, value: copy.date }),
        h('span', {}, atTime(copy.date), ' ', untilTime(copy.date, copy.endsAt)),
        problem && h('span', { class: 'badge draft' }, problem)))
    }))
  }
  /** @type {HTMLFormElement} */
  let element
  const copies = await openDialog(`Repeat “${title}”`, close => {
    element = form({
      fields: [
        {
          name: 'weeks',
          label: 'How often',
          type: 'select',
          options: [['1', 'Every week'], ['2', 'Every two weeks'], ['4', 'Every four weeks']],
        },
        // The service gets a date for each, so its errors name this field.
        { name: 'dates', label: 'How many more times', type: 'number', value: 5, hint: `Up to ${MOST_COPIES}.` },
      ],
      verb: 'Create',
      cancel: close,
      draft: `series ${id}`,
      more: dates,
      async send ({ weeks, dates: times }, once) {
        const all = copiesOf(date, endsAt, Number(weeks), Number(times))
        const left = [...dates.querySelectorAll('input')].filter(({ checked }) => !checked).map(({ value }) => value)
        const chosen = all.filter(({ date }) => !left.includes(date))
        if (all.length > 0 && chosen.length === 0) throw new ApiError('Please choose at least one date.')
        const ends = chosen.flatMap(({ endsAt }) => endsAt ?? [])
        const body = { dates: chosen.map(({ date }) => date), ...ends.length > 0 && { ends } }
        const params = { path: { id }, header: once }
        const { events } = await call(client.POST('/agenda/{id}/copies', { params, body }))
        close(events.length)
      },
    })
    element.addEventListener('input', show)
    show()
    return [element]
  })
  if (!copies) return
  await refresh()
  notify(`${count(copies, 'event has', 'events have')} been created.`)
}

/**
 * The copies of an event, so many weeks apart. Their start and end have the same local time when clocks change.
 *
 * @param {string} date
 * @param {string | null} endsAt
 * @param {number} weeks
 * @param {number} times
 */
const copiesOf = (date, endsAt, weeks, times) =>
  // One more than the service takes, so that it refuses them.
  Array.from({ length: Math.min(MOST_COPIES + 1, times || 0) }, (_, place) => {
    const days = 7 * weeks * (place + 1)
    return { date: daysLater(date, days), endsAt: endsAt && daysLater(endsAt, days) }
  })

/** @param {string} date @param {number} days */
function daysLater (date, days) {
  const later = new Date(date)
  later.setDate(later.getDate() + days)
  return later.toISOString()
}

/**
 * The events of a club from a date on, as far as a series can go.
 *
 * @param {string} club
 * @param {string} from
 */
async function eventsFrom (club, from) {
  const query = { club, from, to: daysLater(from, 7 * 4 * MOST_COPIES + 1), limit: '100' }
  /** @type {Schemas['AgendaEvent'][]} */
  const found = []
  /** @type {string | null} */
  let cursor = null
  do {
    /** @type {{ events: Schemas['AgendaEvent'][], next: string | null }} */
    const page = await call(client.GET('/agenda', { params: { query: { ...query, ...cursor && { cursor } } } }))
    found.push(...page.events)
    cursor = page.next
  } while (cursor)
  return found
}

/** @type {Record<string, string>} */
const STATES = { seated: 'Comes', waiting: 'Waits', drawing: 'Takes part in the draw', declined: "Can't come" }

/**
 * The people who are registered for an event, with their seats.
 *
 * @param {Visit} visit
 */
export async function attendeesPage ({ parts: [id = ''] }) {
  const load = () => call(client.GET('/agenda/{id}/seats', { params: { path: { id } } }))
  const { event, seats } = await load()
  const summary = h('p', { class: 'lead' }, ...summaryOf(event, seats))
  const rows = table('Registrations', ['Person', 'State', 'Action'], seats.map(seat => rowOf(event, seat)))
  let shown = seats
  // Nothing moves under a finger while the people who are shown keep their places.
  const hint = follow([listWith(event)], async () => {
    const { event: now, seats: next } = await load()
    summary.replaceChildren(...summaryOf(now, next))
    const isLonger = shown.every(({ registrationId }, place) => registrationId === next[place]?.registrationId)
    if (!isLonger || seats.length === 0) return next.length === 0
    shown = next
    const body = (/** @type {Element} */ table) => /** @type {Element} */ (table.querySelector('tbody'))
    body(rows).replaceWith(body(table('', [], next.map(seat => rowOf(now, seat)))))
    return true
  })
  return [
    heading(event.title, summary),
    hint,
    seats.length === 0 ? nothing('No one has registered yet.') : rows,
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
 * How many people come to an event.
 *
 * @param {Schemas['ManagedEvent']} event
 * @param {Schemas['Seat'][]} seats
 */
function summaryOf (event, seats) {
  const come = seats.filter(({ state }) => state === 'seated').length
  const wait = seats.filter(({ state }) => state === 'waiting').length
  const draw = seats.filter(({ state }) => state === 'drawing').length
  const declined = seats.length - come - wait - draw
  return [atTime(event.date), [
    ` · ${count(seats.length, 'registration')}`,
    event.capacity === null
      ? count(come, 'person comes', 'people come')
      : `${come} of ${count(event.capacity, 'seat')} taken`,
    declined > 0 && `${declined} can't come`,
    wait > 0 && `${count(wait, 'person is', 'people are')} waiting`,
    draw > 0 && `${count(draw, 'person takes', 'people take')} part in the draw`,
  ].filter(Boolean).join(' · ')]
}

/**
 * The cells of a person.
 *
 * @param {Schemas['ManagedEvent']} event
 * @param {Schemas['Seat']} seat
 */
function rowOf (event, { registrationId, name, email, registeredAt, answeredAt, state, position, isReached }) {
  const text = !EMAILS || state === 'declined' || isOver(event)
    ? 'The registration is deleted, and no email tells the person.'
    : isReached
      ? 'The registration is deleted. An email tells the person, unless they have turned these emails off.'
      : 'The registration is deleted. Tell the person yourself, because emails may not reach them.'
  return [
    h('div', {}, name,
      h('span', { class: 'meta' }, h('span', {}, email),
        !isReached && EMAILS && h('span', { class: 'badge draft' }, 'Cannot be reached'))),
    h('div', {}, `${STATES[state]}${position === null ? '' : ` (number ${position})`}`,
      h('span', { class: 'meta' }, h('span', {}, 'registered on ', onDate(registeredAt)),
        answeredAt !== registeredAt &&
          h('span', {}, state === 'declined' ? 'said so on ' : 'came back on ', atTime(answeredAt)))),
    actionButton('Take off', async () => {
      if (!await confirmed(`Take ${name} off the list?`, text, 'Take off')) return
      const params = { path: { id: event.id, registrationId } }
      await call(client.DELETE('/agenda/{id}/seats/{registrationId}', { params }))
      await refresh()
      notify(`${name} is off the list.`)
    }, { 'aria-label': `Take off ${name}` }),
  ]
}

/**
 * Lets the user write an email to everyone who comes to an event.
 *
 * @param {string} id
 * @param {string} title
 */
async function writeToAll (id, title) {
  const sent = await openDialog(`Email everyone who comes to ${title}`, close => [form({
    fields: [
      { name: 'subject', label: 'Subject' },
      {
        name: 'text',
        label: 'Text',
        type: 'textarea',
        hint: 'Replies go to your email address if you have verified it.',
      },
    ],
    verb: 'Send',
    cancel: close,
    draft: `message ${id}`,
    async send ({ subject = '', text = '' }, once) {
      const params = { path: { id }, header: once }
      const { reach } = await call(client.POST('/agenda/{id}/message', { params, body: { subject, text } }))
      close(`“${subject}” reaches ${reach.reached} of ${reach.reached + reach.notReached}.`)
    },
  })])
  if (sent) notify(sent)
}

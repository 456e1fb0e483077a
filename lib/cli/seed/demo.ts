import { randomUUID } from 'node:crypto'

import type { TransactionSql } from 'postgres'

import { drawSeats, newSeed } from '../../agenda/draws.ts'
import type { Role } from '../../values/roles.ts'
import { EXAMPLE_ID, EXAMPLE_PASSWORD } from '../../values/schemas.ts'
import { BLOGS, CLUBS, EVENTS, MEMBERSHIPS, MENTORS, PEOPLE, TESTIMONIALS } from './demo-data.ts'
import { portrait, scene } from './demo-pictures.ts'

/** The public password of all demo accounts. */
export const PASSWORD = EXAMPLE_PASSWORD

const DOMAIN = 'demo.example.org'

/** The position of the student with the id of the examples. */
const STUDENT = PEOPLE.findIndex(({ name }) => name === 'student')

/** The demo accounts that the command prints. */
export const SIGN_INS: { role: Role, email: string }[] = [
  { role: 'ADMIN', email: `admin@${DOMAIN}` },
  { role: 'CLUB_HEAD', email: `head@${DOMAIN}` },
  { role: 'STUDENT', email: `student@${DOMAIN}` },
]

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Adds the demo community, with dates relative to today. Takes a password hash. Returns the number of added rows. */
export async function seedDemo (sql: TransactionSql, password: string) {
  const now = Date.now()
  const inDays = (days: number) => new Date(now + days * DAY_MS)
  const clubs = withIds(CLUBS)
  const people = withIds(PEOPLE, STUDENT)
  const mentors = withIds(MENTORS)
  const events = withIds(EVENTS).map(event => ({
    ...event,
    // The time of day is in UTC.
    date: new Date(now - now % DAY_MS + event.inDays * DAY_MS + event.hour * HOUR_MS),
    createdAt: inDays(Math.min(event.inDays, 0) - 30),
  }))
  const clubId = (name: string) => clubs.find(club => club.name === name)!.id
  const personOf = (name: string) => people.find(person => person.name === name)!
  const insert = (table: string, rows: object[]) => sql`INSERT INTO ${sql(table)} ${sql(rows)}`

  await insert('clubs', clubs.map(({ id, name, description }) => ({ id, name, description, image_url: scene(name) })))
  await insert('users', people.map(({ id, name, firstName, lastName, role, club }, index) => {
    const joined = inDays(-165 - 200 * Math.random())
    return {
      id,
      email: `${name}@${DOMAIN}`,
      password,
      first_name: firstName,
      last_name: lastName,
      role,
      club_id: club ? clubId(club) : null,
      avatar: portrait(index),
      created_at: joined,
      email_verified_at: joined,
    }
  }))
  for (const { id, head, joining } of clubs) {
    await sql`UPDATE clubs SET club_head_id = ${personOf(head).id} WHERE id = ${id}`
    if (joining) await insert('club_details', [{ club_id: id, joining }])
  }
  // A trigger has added the memberships in the club on each card.
  await sql`
    ${insert('club_members', MEMBERSHIPS.map(({ name, club, state, message, offered, by }, index) => ({
      user_id: personOf(name).id,
      club_id: clubId(club),
      state,
      message: message ?? null,
      offered: offered ?? null,
      offered_by: by ? personOf(by).id : null,
      offered_at: offered ? inDays(0) : null,
      changed_at: inDays(-1 - index),
    })))}
    ON CONFLICT (user_id, club_id) DO UPDATE SET
      offered = excluded.offered, offered_by = excluded.offered_by, offered_at = excluded.offered_at
  `

  await insert('blogs', withIds(BLOGS).map(({ id, title, content, status, author, daysAgo }, index) => {
    const { id: authorId, club } = personOf(author)
    const image = scene(club!, index)
    return { id, title, content, image_url: image, status, author_id: authorId, created_at: inDays(-daysAgo) }
  }))
  await insert('mentors', mentors.map(({ id, name, expertise, networkUrl = '', club }, index) =>
    ({ id, name, expertise, image_url: portrait(index), network_url: networkUrl, club_id: clubId(club) })))
  const likes = await insert('mentor_likes', mentors.flatMap(({ id, likedBy }) =>
    likedBy.map(name => ({ user_id: personOf(name).id, mentor_id: id }))))
  await insert('testimonials', withIds(TESTIMONIALS).map(({ id, name, yearsAgo, content }, index) => {
    const year = new Date(now).getUTCFullYear() - yearsAgo
    return { id, name, batch_year: year, content, image_url: portrait(index), created_at: inDays(-30 * yearsAgo) }
  }))

  await insert('events', events.map(({ id, title, description, club, date, createdAt }, index) => {
    const image = scene(club, index)
    return { id, title, description, image_url: image, date, club_id: clubId(club), created_at: createdAt }
  }))
  // One a day, the last of them the day before the event, or before today.
  const registrations = await insert('event_registrations', events.flatMap(({ id: eventId, date, registered }) =>
    registered.map((name, index) => {
      const { id: userId } = personOf(name)
      const id = userId === eventId ? EXAMPLE_ID : randomUUID()
      const registeredAt = new Date(Math.min(Number(date), now) - (index + 1) * DAY_MS)
      return { id, user_id: userId, event_id: eventId, registered_at: registeredAt }
    })))

  // After the registrations, so that people are in line since they registered.
  for (const { id, hours, place, onlineUrl = null, capacity = null, drawInDays, createdAt } of events) {
    if (!place) continue
    const drawAt = drawInDays === undefined ? null : new Date(now - now % HOUR_MS + drawInDays * DAY_MS)
    await sql`
      INSERT INTO event_details (event_id, duration_ms, place, online_url, capacity, draw_at, draw_from, draw_seed)
      VALUES (
        ${id}, ${hours * HOUR_MS}, ${place}, ${onlineUrl}, ${capacity}, ${drawAt}, ${drawAt && createdAt},
        ${drawAt && newSeed(sql)}
      )
    `
    // The people of the demo data have no inbox.
    if (drawInDays === 0) await drawSeats(sql, id, async () => {})
  }

  return {
    clubs: CLUBS.length,
    users: PEOPLE.length,
    events: EVENTS.length,
    registrations: registrations.count,
    blogs: BLOGS.length,
    mentors: MENTORS.length,
    likes: likes.count,
    testimonials: TESTIMONIALS.length,
  }
}

/** Gives each item an id. One of them has the id of the examples. */
const withIds = <Item extends object>(items: Item[], example = 0) =>
  items.map((item, index) => ({ ...item, id: index === example ? EXAMPLE_ID : randomUUID() as string }))

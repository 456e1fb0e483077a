import { randomUUID } from 'node:crypto'

import type { LightMyRequestResponse } from 'fastify'
import type { TransactionSql } from 'postgres'
import t from 'tap'

import { bearerOfJson, build, inject, person, type Person } from '../../helper.ts'

export const app = await build(t)

export const UNKNOWN = '018f0000-0000-7000-8000-000000000000'
export const FAR_TOO_LONG = 'x'.repeat(10_000)

/** Twenty ids in ascending order, and shuffled, so that no list is sorted by coincidence. */
export function makeIds () {
  const prefix = randomUUID().slice(0, -2)
  const ordered = Array.from({ length: 20 }, (_, i) => prefix + String(i).padStart(2, '0'))
  return { ordered, shuffled: ordered.map((_, i) => ordered[(i * 7 + 3) % 20]!) }
}

export const body = {
  title: 'Chess night',
  description: 'Bring your own board',
  data: '2030-05-01T18:00:00.000Z',
  imageUrl: 'https://img.example/chess.png',
}

export interface Club { id: string, name: string, imageUrl: string | null }

export async function makeClub (fields: Record<string, unknown> = {}, on = app): Promise<Club> {
  const row = { name: randomUUID(), description: 'A club', image_url: 'https://img.example/club.png', ...fields }
  const [club] = await on.sql<Club[]>`
    INSERT INTO clubs ${on.sql(row)} RETURNING id, name, image_url AS "imageUrl"
  `
  return club!
}

export interface Event {
  id: string
  title: string
  description: string
  imageUrl: string | null
  date: string
  clubId: string
  createdAt: string
}

export async function makeEvent (clubId: string, fields: Record<string, unknown> = {}, on = app): Promise<Event> {
  const { title, description, data: date, imageUrl } = body
  const row = { title, description, image_url: imageUrl, date, club_id: clubId, ...fields }
  const [event] = await on.sql`
    INSERT INTO events ${on.sql(row)}
    RETURNING id, title, description, image_url AS "imageUrl", date, club_id AS "clubId", created_at AS "createdAt"
  `
  return JSON.parse(JSON.stringify(event))
}

export interface Registration { id: string, registeredAt: string }

export async function makeRegistration (
  userId: string, eventId: string, fields: Record<string, unknown> = {}, on = app
): Promise<Registration> {
  const [registration] = await on.sql`
    INSERT INTO event_registrations ${on.sql({ user_id: userId, event_id: eventId, ...fields })}
    RETURNING id, registered_at AS "registeredAt"
  `
  return JSON.parse(JSON.stringify(registration))
}

export async function makeHead (club: Club, fields: Record<string, unknown> = {}, on = app) {
  return person(on, 'CLUB_HEAD', { club_id: club.id, ...fields })
}

/** A token with this role, of a user who was deleted. */
export async function ghost (role: Person['role']) {
  const someone = await person(app, role)
  await app.sql`DELETE FROM users WHERE id = ${someone.id}`
  return someone
}

export const clubOf = ({ name, imageUrl }: Club) => ({ name, imageUrl })
export const ids = (items: { id: string }[]) => items.map(({ id }) => id)
export const countRegistrations = async (eventId: string) =>
  (await app.sql`SELECT 1 FROM event_registrations WHERE event_id = ${eventId}`).length

/** Starts requests that a transaction blocks, then commits it. Returns their responses. */
export async function contend (
  hold: (sql: TransactionSql) => Promise<unknown>, start: () => Promise<LightMyRequestResponse>[]
) {
  let responses: Promise<LightMyRequestResponse>[] = []
  await app.sql.begin(async sql => {
    await hold(sql)
    responses = start()
    const settled = Promise.race(responses).then(() => true)
    const allWait = async () => (await app.sql`
      SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    `).length >= responses.length
    for (let done = false; !done;) done = await Promise.race([settled, allWait()])
  })
  return Promise.all(responses)
}

export const send = (someone: Person, method: 'POST' | 'PUT' | 'DELETE', url: string, payload?: string) => inject(
  app, method, url, payload, bearerOfJson(someone.token)
)

/** Dates in a request, and how a response has them. */
export const dates: [data: string, date: string][] = [
  ['2026-01-31T09:30:00.000Z', '2026-01-31T09:30:00.000Z'],
  ['2026-01-31T09:30:00Z', '2026-01-31T09:30:00.000Z'],
  ['2026-01-31T09:30Z', '2026-01-31T09:30:00.000Z'],
  ['2026-01-31', '2026-01-31T00:00:00.000Z'],
  ['2026', '2026-01-01T00:00:00.000Z'],
  ['2026-01-31T09:30:00.1239Z', '2026-01-31T09:30:00.123Z'],
  ['2026-01-31T09:30:00+05:30', '2026-01-31T04:00:00.000Z'],
  ['Sat, 31 Jan 2026 09:30:00 GMT', '2026-01-31T09:30:00.000Z'],
  ['January 31, 2026 09:30 UTC', '2026-01-31T09:30:00.000Z'],
  ['1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
  ['0001-01-01', '0001-01-01T00:00:00.000Z'],
  ['0049-07-01T12:00:00.001Z', '0049-07-01T12:00:00.001Z'],
  ['0050-07-01', '0050-07-01T00:00:00.000Z'],
  ['0099-12-31T23:59:59Z', '0099-12-31T23:59:59.000Z'],
  ['0100-01-01', '0100-01-01T00:00:00.000Z'],
  ['1582-10-10', '1582-10-10T00:00:00.000Z'],
  ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
]

export const badDates = [
  'tomorrow', ' ', 'x', '[object Object]', '2026-13-01', '2026-01-31T25:00:00Z', '+275760-09-13', '+275760-09-14',
  '-271821-04-20', '-000001-01-01', '-000001-12-31T23:59:59.999Z', '0000-12-31T23:59:59.999Z', '0000-01-01',
  '+010000-01-01', '+010000-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999-00:01', '+294276-12-31', 'infinity', 'now',
  'epoch', '9'.repeat(10_000),
]

/** Invalid fields for POST and PUT, and the paths of their issues. */
export const invalidFields: [fields: Record<string, unknown>, ...paths: string[]][] = [
  [{ title: 'ab' }, 'title'],
  [{ title: '' }, 'title'],
  [{ title: '😀' }, 'title'],
  [{ title: null }, 'title'],
  [{ title: 123 }, 'title'],
  [{ title: ['abc'] }, 'title'],
  [{ title: 'NUL \0 character' }, 'title'],
  [{ description: '123456789' }, 'description'],
  [{ description: '' }, 'description'],
  [{ description: null }, 'description'],
  [{ description: 1234567890 }, 'description'],
  [{ description: 'NUL \0 character' }, 'description'],
  [{ data: '' }, 'data'],
  [{ data: null }, 'data'],
  [{ data: 0 }, 'data'],
  [{ data: 1767225600000 }, 'data'],
  [{ data: true }, 'data'],
  [{ imageUrl: '' }, 'imageUrl'],
  [{ imageUrl: null }, 'imageUrl'],
  [{ imageUrl: 'chess.png' }, 'imageUrl'],
  [{ imageUrl: '/chess.png' }, 'imageUrl'],
  [{ imageUrl: '//img.example/chess.png' }, 'imageUrl'],
  [{ imageUrl: {} }, 'imageUrl'],
  [{ imageUrl: 'https://img.example/\0' }, 'imageUrl'],
  [{ title: 'ab', description: 'short', data: '', imageUrl: 'x' }, 'title', 'description', 'data', 'imageUrl'],
  [{ title: 1, description: null }, 'title', 'description'],
]

import { randomUUID } from 'node:crypto'

import type { FastifyInstance } from 'fastify'
import t from 'tap'

import { build, person, type Person } from '../../helper.ts'

export const app = await build(t)

export type Method = Parameters<Person['inject']>[0]
export type Fields = Record<string, unknown>

export const PAST = '2020-02-03T04:05:06.780Z'

export const admin = await person(app, 'ADMIN')

/** Inserts a row. Returns its id. */
export async function store (table: string, fields: Fields, { sql } = app) {
  const [row] = await sql`INSERT INTO ${sql(table)} ${sql(fields)} RETURNING id`
  return row!.id as string
}

export const storeClub = (fields: Fields = {}, on?: FastifyInstance) =>
  store('clubs', { name: `Club ${randomUUID()}`, description: 'A club', ...fields }, on)

export const storeEvent = (clubId: string, fields: Fields = {}, on?: FastifyInstance) =>
  store('events', { title: 'Open day', description: 'All come', date: PAST, club_id: clubId, ...fields }, on)

export const storeBlog = (author: { id: string }, fields: Fields = {}, on?: FastifyInstance) =>
  store('blogs', { title: 'On testing', content: 'As long as a blog must be', author_id: author.id, ...fields }, on)

export const storeMentor = (clubId: string, on?: FastifyInstance) =>
  store('mentors', { name: 'Grace', expertise: 'Compilers', image_url: 'https://x.org/1', club_id: clubId }, on)

export const register = (user: { id: string }, eventId: string, fields: Fields = {}, on?: FastifyInstance) =>
  store('event_registrations', { user_id: user.id, event_id: eventId, ...fields }, on)

export async function storedUser (id: string) {
  const [row] = await app.sql`SELECT * FROM users WHERE id = ${id}`
  return row
}

/** A user as the profile update returns it: every field, and the club. */
export async function profile (id: string, club: { name: string } | null = null) {
  const row = await storedUser(id)
  const { email, password, role } = row!
  return {
    id,
    email,
    password,
    idpId: row!.idp_id,
    avatar: row!.avatar,
    firstName: row!.first_name,
    lastName: row!.last_name,
    role,
    clubId: row!.club_id,
    createdAt: new Date(row!.created_at).toISOString(),
    updatedAt: new Date(row!.updated_at).toISOString(),
    club,
  }
}

import { randomUUID } from 'node:crypto'

import t from 'tap'

import type { Sql } from '#lib/database/client.js'
import { build, person } from '../../helper.ts'

export const app = await build(t)
export const admin = await person(app, 'ADMIN')

export async function addClub (fields: Record<string, unknown> = {}, { sql }: { sql: Sql } = app) {
  const club = { name: randomUUID(), description: 'A club', ...fields }
  const [row] = await sql<{ id: string, name: string }[]>`INSERT INTO clubs ${sql(club)} RETURNING id, name`
  return row!
}

export async function addMentor (fields: Record<string, unknown> = {}, { sql }: { sql: Sql } = app) {
  const mentor = {
    name: 'Ada',
    expertise: 'Mathematics',
    image_url: 'https://example.org/ada.png',
    club_id: (await addClub({}, { sql })).id,
    ...fields,
  }
  const [row] = await sql<{ id: string }[]>`INSERT INTO mentors ${sql(mentor)} RETURNING id`
  return row!.id
}

export async function like (mentorId: string, ...people: { id: string }[]) {
  for (const { id } of people) {
    await app.sql`INSERT INTO mentor_likes (user_id, mentor_id) VALUES (${id}, ${mentorId})`
  }
}

export async function likesOf (mentorId: string) {
  const likes = await app.sql<{ userId: string }[]>`
    SELECT user_id AS "userId" FROM mentor_likes WHERE mentor_id = ${mentorId}
  `
  return likes.map(({ userId }) => userId).sort()
}

export async function stored (id: string) {
  const [mentor] = await app.sql`SELECT * FROM mentors WHERE id = ${id}`
  return mentor
}

export const NUL = '\0'
export const LONG = 'x'.repeat(10_240)

/** Valid and invalid values of each field, for create and update. */
export const FIELDS: Record<string, { takes: unknown[], refuses: unknown[] }> = {
  name: {
    takes: ['A', ' ', LONG, 'Zoë 😀', '\'"; --', '\ufeff'],
    refuses: ['', 5, true, null, ['Ada'], {}, NUL, `Ada${NUL}`],
  },
  expertise: {
    takes: ['xx', '  ', '😀', LONG],
    refuses: ['', 'x', 'é', 12, null, ['xx'], {}, `xx${NUL}`],
  },
  imageUrl: {
    takes: ['https://example.org', 'HTTPS://Example.ORG/a b', 'data:,x', 'mailto:ada@example.org', `data:,${LONG}`],
    refuses: ['', 'nope', '/ada.png', '//example.org/x', 'https://', 5, true, null, ['https://example.org'], {},
      `https://example.org/${NUL}`],
  },
  networkUrl: {
    takes: ['', 'not a URL', 'https://network.example/ada', LONG],
    refuses: [5, true, [], {}, `a${NUL}`],
  },
}

export const NO_CLUB_ID = { refuses: ['', 5, true, null, [], {}, NUL] }

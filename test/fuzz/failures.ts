// When the contract has an operation return 500.
import type { Sql } from 'postgres'

import type { Message } from './requests.ts'

/** A request with its response, and the database, which a 500 has left unchanged. */
interface Facts extends Pick<Message, 'params' | 'query' | 'bearer'> {
  sql: Sql
  body: Record<string, unknown>
}

type Condition = (facts: Facts) => boolean | Promise<boolean>

/** Tells whether no row of the table has this value. Only storable text can match. */
async function isUnknown (sql: Sql, table: string, value: unknown, column = 'id') {
  if (typeof value !== 'string' || value.includes('\0')) return true
  const { count } = await sql`SELECT FROM ${sql(table)} WHERE ${sql(column)}::text = ${value}`
  return count === 0
}

const unknownId = (table: string): Condition => ({ sql, params }) => isUnknown(sql, table, Object.values(params)[0])

const unknownClub: Condition = ({ sql, body: { clubId } }) =>
  clubId !== undefined && clubId !== null && isUnknown(sql, 'clubs', clubId)

const unknownBearer: Condition = ({ sql, bearer }) => isUnknown(sql, 'users', bearer?.id)

const either = (...conditions: Condition[]): Condition => async facts => {
  for (const condition of conditions) if (await condition(facts)) return true
  return false
}

/** A date that JavaScript cannot parse, or whose year does not have four digits. */
const unreadableDate: Condition = ({ body: { data } }) => {
  if (data === undefined) return false
  const year = new Date(String(data)).getUTCFullYear()
  return !(year >= 1 && year <= 9999)
}

/** A LIMIT or OFFSET that PostgreSQL rejects. */
const isNoCount = (count: number) => !(count >= 0 && count < 2 ** 63)

const text = (value: unknown) => typeof value === 'string' && !value.includes('\0')

/** When the contract has each operation return 500; any other 500 is a defect. */
export const EXPECTED_500S: Record<string, Condition> = {
  // A token may outlive its user.
  'POST /blogs/submit': unknownBearer,
  'POST /blogs': unknownBearer,
  'PUT /blogs/:id': unknownId('blogs'),
  'POST /blogs/:id/approve': unknownId('blogs'),
  'POST /blogs/:id/archive': unknownId('blogs'),
  'DELETE /blogs/:id': unknownId('blogs'),

  // Malformed state.
  'GET /auth/google/callback': ({ query: { state } }) => {
    try {
      return JSON.parse(Buffer.from(String(state), 'base64url').toString()) === null
    } catch {
      return true
    }
  },

  'PUT /users/:id': either(unknownClub, async ({ sql, params, body: { email } }) => {
    const [owner] = await sql`SELECT id FROM users WHERE email = ${String(email)}`
    return owner !== undefined && owner.id !== params.id
  }),
  'PUT /users/:userId/role': unknownId('users'),
  'PUT /users/:userId/club': either(unknownId('users'), unknownClub),
  'DELETE /users/:id': async ({ sql, params }) => {
    const referring = await Promise.all([
      isUnknown(sql, 'blogs', params.id, 'author_id'), isUnknown(sql, 'event_registrations', params.id, 'user_id'),
    ])
    return referring.includes(false)
  },

  'POST /mentors/:mentorId/like': unknownBearer,
  'POST /mentors': unknownClub,
  'PUT /mentors/:id': either(unknownId('mentors'), unknownClub, ({ body: { networkUrl } }) => networkUrl === null),
  'DELETE /mentors/:id': unknownId('mentors'),

  'GET /testimonials': ({ query: { page, limit } }) => {
    const first = Number.parseInt(String(page || '1'), 10)
    const count = Number.parseInt(String(limit || '12'), 10)
    return isNaN(first) || isNaN(count) || isNoCount((Math.max(1, first) - 1) * Math.min(100, Math.max(1, count)))
  },
  'PUT /testimonials/:id': unknownId('testimonials'),
  'DELETE /testimonials/:id': unknownId('testimonials'),

  'POST /clubs': either(
    ({ body: { name, description } }) => !text(name) || !text(description),
    ({ body: { imageUrl } }) => imageUrl !== undefined && imageUrl !== null && typeof imageUrl !== 'string',
    ({ body: { clubHeadEmail } }) => clubHeadEmail !== undefined && typeof clubHeadEmail !== 'string',
    // There is no schema, so text that PostgreSQL cannot store fails in the query.
    ({ body: { imageUrl, clubHeadEmail } }) => `${imageUrl}${clubHeadEmail}`.includes('\0'),
    async ({ sql, body: { name } }) => !await isUnknown(sql, 'clubs', name, 'name'),
    async ({ sql, body: { clubHeadEmail } }) => {
      const { count } = await sql`
        SELECT FROM users JOIN clubs ON clubs.club_head_id = users.id WHERE email = ${String(clubHeadEmail)}
      `
      return count > 0
    }),

  'GET /events': ({ query: { page, limit } }) => {
    const first = Number.parseInt(String(page)) || 1
    const count = Number.parseInt(String(limit)) || 12
    return isNoCount(count) || isNoCount((first - 1) * count)
  },
  'POST /events': unreadableDate,
  'PUT /events/:id': either(unreadableDate, facts => facts.body.clubId !== '' && unknownClub(facts)),
  'POST /events/:eventId/register': either(unknownId('events'), unknownBearer),
}

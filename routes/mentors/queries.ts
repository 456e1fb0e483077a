import type { Static } from '@sinclair/typebox'
import type { CachedQuery } from '../../lib/cache/index.ts'
import { type AnySql, expectOne, type Sql } from '../../lib/database/pools.ts'
import { assignments, clubCard, likeCount } from '../../lib/database/columns.ts'
import { type Attempt, insertOnce } from '../../lib/database/idempotency.ts'
import type { create, update } from './schemas.ts'

type Mentor = Static<typeof create.response[201]>['mentor']
type NewMentor = Static<typeof create.body> & { imageUrl: string }

const columns = (sql: AnySql) => sql`
  mentors.id, mentors.name, expertise, mentors.image_url AS "imageUrl", network_url AS "networkUrl",
  club_id AS "clubId"
`

/** SQL query: the mentors of a table with the names of their clubs, before a clause continues. */
const mentorsOf = (sql: AnySql, table = sql`mentors`) => sql`
  SELECT ${columns(sql)}, json_build_object('name', clubs.name) AS club
  FROM ${table} AS mentors JOIN clubs ON clubs.id = club_id
`

/** SQL query: the mentors with their clubs and likes, before a clause continues. */
const profiles = (sql: AnySql) => sql`
  SELECT ${columns(sql)}, ${clubCard(sql)}, ${likeCount(sql)} AS "likeCount"
  FROM mentors JOIN clubs ON clubs.id = club_id
`

export const mentorsQuery = (sql: Sql): CachedQuery => ({
  list: { field: 'mentors', rows: sql`${profiles(sql)} ORDER BY mentors.name, mentors.id` },
})

export const likedMentorsQuery = (sql: Sql, userId: string): CachedQuery => ({
  list: {
    field: 'likedMentors',
    rows: sql`
      ${profiles(sql)} JOIN mentor_likes AS liked ON liked.mentor_id = mentors.id
      WHERE liked.user_id = ${userId}
      ORDER BY mentors.name, mentors.id
    `,
  },
})

/**
 * Toggles a user's like of a mentor. Returns whether the user likes the mentor now; `undefined` for an unknown mentor.
 * The lock prevents deletion of the mentor but does not block other likes.
 */
export async function toggleLike (sql: Sql, userId: string, mentorId: string): Promise<boolean | undefined> {
  const [toggled] = await sql<{ liked: boolean, unliked: boolean }[]>`
    WITH mentor AS (
      SELECT id FROM mentors WHERE id = ${mentorId} FOR KEY SHARE
    ), unliked AS (
      DELETE FROM mentor_likes USING mentor WHERE user_id = ${userId} AND mentor_id = mentor.id RETURNING mentor_id
    ), liked AS (
      INSERT INTO mentor_likes (user_id, mentor_id)
      SELECT ${userId}, id FROM mentor WHERE NOT EXISTS (SELECT FROM unliked)
      ON CONFLICT DO NOTHING
      RETURNING mentor_id
    )
    SELECT EXISTS (SELECT FROM liked) AS liked, EXISTS (SELECT FROM unliked) AS unliked FROM mentor
  `
  if (!toggled) return undefined
  // A parallel request by the same user inserted a like after our DELETE and before our INSERT. Retry: the DELETE now
  // sees it.
  if (!toggled.liked && !toggled.unliked) return toggleLike(sql, userId, mentorId)
  return toggled.liked
}

/**
 * Counts likes in a separate statement, so that the count includes the new like. The cast is needed because the driver
 * reads numeric as a string.
 */
export async function countLikes (sql: Sql, mentorId: string) {
  const { count } = expectOne(await sql<{ count: number }[]>`
    SELECT coalesce(sum(count), 0)::int AS count FROM mentor_like_counts WHERE mentor_id = ${mentorId}
  `)
  return count
}

/** Adds a mentor, and only one if requests have the same key. */
export const insertMentor = (
  sql: Sql, { name, expertise, imageUrl, networkUrl, clubId }: NewMentor, attempt: Attempt | undefined
) => insertOnce(sql, attempt, sql => sql<Mentor[]>`
  WITH created AS (
    INSERT INTO mentors (name, expertise, image_url, network_url, club_id)
    VALUES (${name}, ${expertise}, ${imageUrl}, ${networkUrl ?? ''}, ${clubId})
    RETURNING *
  )
  ${mentorsOf(sql, sql`created`)}
`, (sql, id) => sql<Mentor[]>`
  ${mentorsOf(sql)} WHERE mentors.id = ${id}
`)

/** Changes the given fields. The column of `networkUrl` refuses null. */
export async function updateMentor (sql: Sql, id: string, changes: Static<typeof update.body>) {
  return expectOne(await sql<Mentor[]>`
    WITH changed AS (
      UPDATE mentors SET ${assignments(sql, changes, ['name', 'expertise', 'imageUrl', 'networkUrl', 'clubId'])}
      WHERE id = ${id}
      RETURNING *
    )
    ${mentorsOf(sql, sql`changed`)}
  `)
}

export async function deleteMentor (sql: Sql, id: string) {
  expectOne(await sql`DELETE FROM mentors WHERE id = ${id} RETURNING id`)
}

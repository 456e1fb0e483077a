import type { PendingQuery, Row } from 'postgres'

import {
  jsonArray, type ReadBatch, type KeysetPosition, nextRows, type Reader, readInBatches,
} from '../database/keyset.ts'
import { answeredAt, comes, inLineSince, withAnswers } from '../agenda/seats.ts'
import { officeOf } from '../clubs/members.ts'
import type { AnySql, Sql } from '../database/pools.ts'
import { avatarOf, bytesOf } from '../database/columns.ts'
import { preferences } from '../email/notifications.ts'

/** A row as JSON. */
interface Item {
  item: string
}

/**
 * Reads all stored data about a user as JSON in pieces; `undefined` for an unknown user. In one piece, ten exports with
 * 50 MB of drafts each would hold 500 MB. Hashes of passwords, networks and requests, ids in emails, and failed
 * sign-ins are omitted: a failed sign-in is forgotten soon and may be someone else's. The first batch of each list is
 * read before the promise resolves, so that most errors occur before the response starts. `picturesUrl` is the base URL
 * of all pictures.
 */
export async function readPersonalData (
  read: Reader, userId: string, picturesUrl: string | null
): Promise<AsyncIterable<string> | undefined> {
  const user = await read(sql => findUser(sql, userId, picturesUrl))
  if (!user) return undefined
  const { account, others } = user
  const lists: [name: string, items: AsyncIterable<Item>][] = []
  for (const [name, list] of Object.entries(LISTS)) {
    lists.push([name, await readInBatches(read, batchesOf(list, userId))])
  }
  return pieces()

  async function * pieces () {
    yield `{"account":${account}`
    for (const [name, items] of lists) {
      yield `,"${name}":`
      yield * jsonArray(items)
    }
    yield `,${others.slice('{'.length)}`
  }
}

/** Returns the account and the short parts as two JSON objects. */
async function findUser (sql: Sql, userId: string, picturesUrl: string | null) {
  const [user] = await sql<{ account: string, others: string }[]>`
    SELECT
      json_build_object(
        'id', users.id, 'email', email, 'firstName', first_name, 'lastName', last_name,
        'avatar', ${avatarOf(sql, picturesUrl)}, 'providerId', idp_id, 'role', role,
        'club', CASE WHEN clubs.id IS NOT NULL THEN json_build_object('id', clubs.id, 'name', clubs.name) END,
        'emailVerifiedAt', iso8601(email_verified_at),
        'newEmail', (SELECT new_email FROM account_tokens WHERE user_id = users.id AND purpose = 'email'),
        'createdAt', iso8601(users.created_at), 'updatedAt', iso8601(users.updated_at)
      )::text AS account,
      json_build_object(
        'clubs', (
          SELECT coalesce(json_agg(json_build_object(
            'id', clubs.id, 'name', clubs.name, 'state', state, 'office', ${officeOf(sql)}, 'offered', offered,
            'offeredAt', iso8601(offered_at), 'message', message, 'reason', reason, 'news', news,
            'changedAt', iso8601(changed_at), 'refusedAt', iso8601(refused_at)
          ) ORDER BY clubs.name), '[]')
          FROM club_members AS members JOIN clubs ON clubs.id = members.club_id WHERE user_id = users.id
        ),
        'offers', (
          SELECT coalesce(json_agg(json_build_object(
            'club', json_build_object('id', clubs.id, 'name', clubs.name), 'office', offered,
            'offeredAt', iso8601(offered_at)
          ) ORDER BY offered_at, members.user_id), '[]')
          FROM club_members AS members JOIN clubs ON clubs.id = members.club_id WHERE offered_by = users.id
        ),
        'calendar', (
          SELECT json_build_object('createdAt', iso8601(created_at)) FROM calendar_tokens WHERE user_id = users.id
        ),
        'notifications', (SELECT ${preferences(sql)} FROM notifications WHERE user_id = users.id),
        'tokens', (
          SELECT json_build_object('revokedAt', iso8601(revoked_at)) FROM revoked_tokens WHERE user_id = users.id
        )
      )::text AS others
    FROM users LEFT JOIN clubs ON clubs.id = club_id
    WHERE users.id = ${userId}
  `
  return user
}

const eventOf = (sql: AnySql) => sql`json_build_object('id', event_id, 'title', title, 'date', iso8601(date))`

/** SQL: the rows of a list in the export, as `nextRows` takes them, and the JSON of a row with its `time`. */
type List = (sql: Sql, userId: string) => { rows: PendingQuery<Row[]>, item: PendingQuery<Row[]> }

/** The lists of the export by their names. */
const LISTS: Record<string, List> = {
  blogs: (sql, userId) => ({
    rows: sql`
      SELECT *, created_at AS at, ${bytesOf(sql, 'title', 'content', 'image_url')} AS size
      FROM blogs WHERE author_id = ${userId}
    `,
    item: sql`json_build_object(
      'id', id, 'title', title, 'content', content, 'imageUrl', image_url, 'status', status,
      'createdAt', time, 'publishedAt', iso8601(published_at), 'updatedAt', iso8601(updated_at)
    )`,
  }),
  registrations: (sql, userId) => ({
    rows: sql`
      SELECT
        registered_at AS at, registrations.id, registrations.event_id, title, date, ${bytesOf(sql, 'title')} AS size,
        ${comes(sql)} AS coming, ${answeredAt(sql)} AS answered, ${inLineSince(sql)} AS since
      FROM event_registrations AS registrations
        JOIN events ON events.id = registrations.event_id
        ${withAnswers(sql)}
      WHERE user_id = ${userId}
    `,
    item: sql`json_build_object(
      'id', id, 'registeredAt', time, 'coming', coming, 'answeredAt', iso8601(answered),
      'inLineSince', iso8601(since), 'event', ${eventOf(sql)}
    )`,
  }),
  likes: (sql, userId) => ({
    rows: sql`
      SELECT created_at AS at, mentors.id, name, ${bytesOf(sql, 'name')} AS size
      FROM mentor_likes JOIN mentors ON mentors.id = mentor_id WHERE user_id = ${userId}
    `,
    item: sql`json_build_object('likedAt', time, 'mentor', json_build_object('id', id, 'name', name))`,
  }),
  emails: (sql, userId) => ({
    rows: sql`
      SELECT created_at AS at, id, template, status, settled_at, ${bytesOf(sql, 'template')} AS size
      FROM emails WHERE user_id = ${userId}
    `,
    item: sql`json_build_object(
      'template', template, 'createdAt', time, 'status', status,
      'sentAt', CASE WHEN status = 'sent' THEN iso8601(settled_at) END
    )`,
  }),
  messages: (sql, userId) => ({
    rows: sql`
      SELECT
        messages.created_at AS at, messages.id, subject, text, event_id, title, date,
        ${bytesOf(sql, 'subject', 'text', 'title')} AS size
      FROM event_messages AS messages LEFT JOIN events ON events.id = event_id WHERE sender_id = ${userId}
    `,
    item: sql`json_build_object(
      'subject', subject, 'text', text, 'sentAt', time, 'event', CASE WHEN title IS NOT NULL THEN ${eventOf(sql)} END
    )`,
  }),
  pictures: (sql, userId) => ({
    rows: sql`SELECT created_at AS at, id, width, height, 100 AS size FROM pictures WHERE user_id = ${userId}`,
    item: sql`json_build_object('id', id, 'width', width, 'height', height, 'createdAt', time)`,
  }),
}

/** The JSON of long texts is made for the rows of a batch only, not for the rows after it that were examined. */
const batchesOf = (list: List, userId: string): ReadBatch<Item> => (sql, last) => {
  const { rows, item } = list(sql, userId)
  return sql<(Item & KeysetPosition)[]>`
    SELECT time, id, ${item}::text AS item FROM (${nextRows(sql, last, rows)}) AS batch ORDER BY at DESC, id
  `
}

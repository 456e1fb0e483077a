import type { Sql } from '../database/client.ts'
import { eventSummary } from '../database/columns.ts'

/**
 * Finds everything that the platform holds of a user but hashes, of a password or a network: one row, with a column
 * for each kind; none when there is no such user. The time of a failed sign-in is left out: it is forgotten soon, and
 * may be of somebody else.
 */
export const personalData = (sql: Sql, userId: string) => sql`
  SELECT
    (
      SELECT row_to_json(account)
      FROM (
        SELECT
          users.id, email, first_name AS "firstName", last_name AS "lastName", avatar, idp_id AS "providerId", role,
          CASE WHEN clubs.id IS NOT NULL THEN json_build_object('id', clubs.id, 'name', clubs.name) END AS club,
          iso8601(email_verified_at) AS "emailVerifiedAt",
          iso8601(users.created_at) AS "createdAt", iso8601(users.updated_at) AS "updatedAt"
      ) AS account
    ) AS account,
    (
      SELECT coalesce(json_agg(blog), '[]')
      FROM (
        SELECT
          id, title, content, image_url AS "imageUrl", status,
          iso8601(created_at) AS "createdAt", iso8601(updated_at) AS "updatedAt"
        FROM blogs WHERE author_id = users.id ORDER BY created_at DESC, id
      ) AS blog
    ) AS blogs,
    (
      SELECT coalesce(json_agg(registration), '[]')
      FROM (
        SELECT registrations.id, iso8601(registered_at) AS "registeredAt", ${eventSummary(sql)} AS event
        FROM event_registrations AS registrations JOIN events ON events.id = event_id
        WHERE user_id = users.id ORDER BY registered_at DESC, registrations.id
      ) AS registration
    ) AS registrations,
    (
      SELECT coalesce(json_agg(liked), '[]')
      FROM (
        SELECT iso8601(created_at) AS "likedAt", json_build_object('id', mentors.id, 'name', name) AS mentor
        FROM mentor_likes JOIN mentors ON mentors.id = mentor_id
        WHERE user_id = users.id ORDER BY created_at DESC, mentor_id
      ) AS liked
    ) AS likes,
    (
      SELECT row_to_json(calendar)
      FROM (SELECT iso8601(created_at) AS "createdAt" FROM calendar_tokens WHERE user_id = users.id) AS calendar
    ) AS calendar,
    (
      SELECT coalesce(json_agg(network), '[]')
      FROM (
        SELECT used_on AS "lastSignIn" FROM known_networks WHERE user_id = users.id ORDER BY used_on DESC, hash
      ) AS network
    ) AS networks,
    (
      SELECT coalesce(json_agg(mail), '[]')
      FROM (
        SELECT
          kind, iso8601(created_at) AS "createdAt",
          CASE WHEN status = 'sent' THEN iso8601(settled_at) END AS "sentAt"
        FROM mails WHERE user_id = users.id ORDER BY created_at DESC, id
      ) AS mail
    ) AS mails,
    (
      SELECT row_to_json(tokens)
      FROM (SELECT iso8601(ended_at) AS "endedAt" FROM ended_tokens WHERE user_id = users.id) AS tokens
    ) AS tokens
  FROM users LEFT JOIN clubs ON clubs.id = club_id
  WHERE users.id = ${userId}
`

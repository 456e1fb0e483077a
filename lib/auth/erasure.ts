import type { Sql } from '../database/client.ts'
import { StartupError } from '../errors.ts'
import { idOfEmail } from './accounts.ts'
import { PLACEHOLDER } from './passwords.ts'

/** Counts of the rows that an erasure removes, or would remove. */
export interface Erasure {
  id: string
  registrations: number
  likes: number
  /** Drafts and archived blogs. */
  unpublishedBlogs: number
  publishedBlogs: number
  /** Testimonials and mentors belong to no account: only a human can say whether they are this person. */
  testimonialsOfThatName: number
  mentorsOfThatName: number
}

/** The author of what erased people published. Without an email address it can neither register nor sign in. */
export const FORMER_MEMBER = {
  email: 'former-member', password: PLACEHOLDER, first_name: 'Former', last_name: 'member',
}

/**
 * Erases the account of this email with all that belongs to it; `undefined` when there is none. Published blogs stay
 * under a neutral author, or go as well. A dry run changes nothing.
 */
export function eraseUser (
  sql: Sql, address: string, { withBlogs = false, dryRun = false }
): Promise<Erasure | undefined> {
  return sql.begin(async sql => {
    // Writes for this person finish first, so that the next statements see them, and no further one begins.
    const [user] = await sql<{ id: string, email: string }[]>`
      SELECT id, email FROM users WHERE id = ${idOfEmail(sql, address)} FOR UPDATE
    `
    if (!user) return undefined
    const { id, email } = user
    const [erasure] = await sql<[Erasure]>`
      SELECT
        id,
        (SELECT count(*)::int FROM event_registrations WHERE user_id = users.id) AS registrations,
        (SELECT count(*)::int FROM mentor_likes WHERE user_id = users.id) AS likes,
        (SELECT count(*)::int FROM blogs WHERE author_id = users.id AND status <> 'PUBLISHED') AS "unpublishedBlogs",
        (SELECT count(*)::int FROM blogs WHERE author_id = users.id AND status = 'PUBLISHED') AS "publishedBlogs",
        (SELECT count(*)::int FROM testimonials WHERE name = full_name) AS "testimonialsOfThatName",
        (SELECT count(*)::int FROM mentors WHERE name = full_name) AS "mentorsOfThatName"
      FROM users, concat(first_name, ' ', last_name) AS full_name WHERE id = ${id}
    `
    if (dryRun) return erasure
    if (email === FORMER_MEMBER.email && erasure.publishedBlogs > 0 && !withBlogs) {
      throw new StartupError(`${email} is the author of what erased people have published: it goes only with that`)
    }

    // Locked in the order of the operations that delete an event or a mentor: in another one they would deadlock.
    await sql`
      SELECT FROM events WHERE id IN (SELECT event_id FROM event_registrations WHERE user_id = ${id})
      ORDER BY id FOR KEY SHARE
    `
    await sql`
      SELECT FROM mentors WHERE id IN (SELECT mentor_id FROM mentor_likes WHERE user_id = ${id})
      ORDER BY id FOR KEY SHARE
    `
    // Locked in the order of a retention.
    await sql`SELECT FROM event_registrations WHERE user_id = ${id} ORDER BY id FOR UPDATE`
    await sql`DELETE FROM event_registrations WHERE user_id = ${id}`
    // Locked in the order of a sender.
    await sql`SELECT FROM emails WHERE user_id = ${id} ORDER BY id FOR UPDATE`
    await sql`DELETE FROM blogs WHERE author_id = ${id} AND (${withBlogs} OR status <> 'PUBLISHED')`
    if (!withBlogs && erasure.publishedBlogs > 0) {
      await sql`INSERT INTO users ${sql(FORMER_MEMBER)} ON CONFLICT (email) DO NOTHING`
      await sql`
        UPDATE blogs SET author_id = (SELECT id FROM users WHERE email = ${FORMER_MEMBER.email}) WHERE author_id = ${id}
      `
    }
    await sql`UPDATE clubs SET club_head_id = NULL WHERE club_head_id = ${id}`
    await sql`
      DELETE FROM rate_limits WHERE split_part(key, ' ', 1) IN (${id}::text, ${email}, ${email.toLowerCase()})
    `
    // This also deletes likes, emails and the calendar. The row in revoked_tokens stays: no old token may work again.
    await sql`DELETE FROM users WHERE id = ${id}`
    return erasure
  })
}

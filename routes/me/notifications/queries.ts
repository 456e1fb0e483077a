import type { CachedQuery } from '../../../lib/cache/index.ts'
import type { Sql } from '../../../lib/database/pools.ts'
import { assignments } from '../../../lib/database/columns.ts'
import { isNotified, preferences } from '../../../lib/email/notifications.ts'
import { type Notifications, SWITCH_NAMES } from './schemas.ts'

/**
 * The email preferences of a user. Without a row for an unknown user. `reminderHours` is REMINDER_HOURS, 0 for no
 * reminders.
 */
export const notificationsQuery = (sql: Sql, userId: string, reminderHours: number): CachedQuery => ({
  fields: sql`
    SELECT ${preferences(sql)} AS notifications,
    CASE WHEN ${isNotified(sql, 'event-reminder')} THEN nullif(${reminderHours}::int, 0) END AS "reminderHours"
    FROM users LEFT JOIN notifications ON user_id = users.id WHERE users.id = ${userId}
  `,
})

/** Changes the given email preferences. Returns all preferences; `undefined` for an unknown user. */
export function setNotifications (sql: Sql, userId: string, wanted: Partial<Notifications>) {
  return sql.begin(async sql => {
    const { count } = await sql`SELECT FROM users WHERE id = ${userId} FOR KEY SHARE`
    if (count === 0) return undefined
    await sql`INSERT INTO notifications (user_id) VALUES (${userId}) ON CONFLICT DO NOTHING`
    const [{ notifications }] = await sql<[{ notifications: Notifications }]>`
      UPDATE notifications SET ${assignments(sql, wanted, SWITCH_NAMES, false)} WHERE user_id = ${userId}
      RETURNING ${preferences(sql)} AS notifications
    `
    return notifications
  })
}

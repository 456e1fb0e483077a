import type { Body, CachedQuery } from '../../../lib/cache/index.ts'
import type { Sql } from '../../../lib/database/pools.ts'
import { toColumns } from '../../../lib/database/columns.ts'
import { isNotified, preferences } from '../../../lib/email/notifications.ts'
import { type list, type Notifications, SWITCH_NAMES } from './schemas.ts'

/**
 * The email preferences of a user. Without a row for an unknown user. `reminderHours` is REMINDER_HOURS, 0 for no
 * reminders.
 */
export const notificationsQuery = (
  sql: Sql, userId: string, reminderHours: number
): CachedQuery<Body<typeof list>> => ({
  fields: sql`
    SELECT ${preferences(sql)} AS notifications,
    CASE WHEN ${isNotified(sql, 'event-reminder')} THEN nullif(${reminderHours}::int, 0) END AS "reminderHours"
    FROM users LEFT JOIN notifications ON user_id = users.id WHERE users.id = ${userId}
  `,
})

/** Changes the given email preferences. Returns all preferences; `undefined` for an unknown user. */
export function setNotifications (sql: Sql, userId: string, wanted: Partial<Notifications>) {
  const columns = { ...toColumns(wanted, SWITCH_NAMES), user_id: userId }
  return sql.begin(async sql => {
    const { count } = await sql`SELECT FROM users WHERE id = ${userId} FOR KEY SHARE`
    if (count === 0) return undefined
    const [{ notifications }] = await sql<[{ notifications: Notifications }]>`
      INSERT INTO notifications ${sql(columns)} ON CONFLICT (user_id) DO UPDATE SET ${sql(columns)}
      RETURNING ${preferences(sql)} AS notifications
    `
    return notifications
  })
}

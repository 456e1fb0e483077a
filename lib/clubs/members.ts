import type { TransactionSql } from 'postgres'

import type { Sql } from '../database/client.ts'

type AnySql = Sql | TransactionSql

/** Whether a person can join a club at once, must ask, or cannot join. */
export const JOINING = ['open', 'request', 'closed'] as const

/** SQL expression: who can join `clubs`. */
export const joiningOf = (sql: AnySql) => sql`
  coalesce((SELECT joining FROM club_details WHERE club_id = clubs.id), 'request')
`

/** SQL expression: the number of members of `clubs`. */
export const memberCount = (sql: AnySql) => sql`
  (SELECT count(*) FROM club_members WHERE club_id = clubs.id AND state = 'member')
`

/** SQL condition: `users` organizes `clubs`, as its head or as a deputy. */
export const isOrganizer = (sql: AnySql) => sql`
  (users.club_id = clubs.id AND users.role IN ('CLUB_HEAD', 'ADMIN')) IS TRUE
`

/** SQL expression: the office of `users` in `clubs`: `head`, `deputy` or null. */
export const officeOf = (sql: AnySql) => sql`
  CASE WHEN ${isOrganizer(sql)} THEN CASE WHEN users.id = clubs.club_head_id THEN 'head' ELSE 'deputy' END END
`

/** SQL condition: `users` may edit `clubs`, and decide who is a member. */
export const managesClub = (sql: AnySql) => sql`(users.role = 'ADMIN' OR ${isOrganizer(sql)})`

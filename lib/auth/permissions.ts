import type { TransactionSql } from 'postgres'

import type { Sql } from '../database/client.ts'
import type { Role } from './accounts.ts'

/** Whether the user may manage the event at hand: an admin any, a club head those of their current club. */
export const isManagedBy = (sql: Sql | TransactionSql, { id, role }: { id: string, role: Role }) => sql`
  (${role === 'ADMIN'} OR events.club_id = (SELECT users.club_id FROM users WHERE users.id = ${id})) IS TRUE
`

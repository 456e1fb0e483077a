import type { Sql } from '../database/client.ts'
import { enqueueEmails } from './outbox.ts'

/** SQL statement that enqueues an email to verify the address of the user in the CTE `created`. */
export const enqueueVerification = (sql: Sql, network: string) => enqueueEmails(sql, 'email-verification', sql`
  SELECT id AS user_id, '{}'::jsonb AS data, NULL AS key FROM created
`, network)

import type { TransactionSql } from 'postgres'

import type { Role } from '../../auth/accounts.ts'

/** The password of every account that the command adds. It is public. */
export const PASSWORD = 'demo-password'

/** The accounts to sign in as: what stands before the @ of their addresses, which are the same whatever is added. */
export const SIGN_INS: { role: Role, name: string }[] = [
  { role: 'ADMIN', name: 'admin' },
  { role: 'CLUB_HEAD', name: 'head' },
  { role: 'STUDENT', name: 'student' },
]

/** The rows to add, in the order of their foreign keys. */
export const KINDS = [
  'clubs', 'users', 'events', 'registrations', 'blogs', 'mentors', 'likes', 'testimonials',
] as const

/** How many of each kind. */
export type Amounts = Record<typeof KINDS[number], number>

/** The rows that were added, and the domain of their addresses. */
export interface Seeded {
  added: Amounts
  domain: string
}

/** Marks that keep two runs apart: the domain of the addresses, and a suffix of club names. */
interface Edition {
  domain: string
  suffix: string
}

/** The first edition whose email addresses and club names are all free. */
export async function findEdition (sql: TransactionSql, clubNames: string[]): Promise<Edition> {
  for (let number = 1; ; number++) {
    const edition = number === 1
      ? { domain: 'demo.example.org', suffix: '' }
      : { domain: `demo${number}.example.org`, suffix: ` ${number}` }
    const names = clubNames.map(name => name + edition.suffix)
    const taken = await sql`
      SELECT FROM users WHERE email LIKE ${`%@${edition.domain}`}
      UNION ALL
      SELECT FROM clubs WHERE name IN (SELECT jsonb_array_elements_text(${sql.json(names)}))
      LIMIT 1
    `
    if (taken.length === 0) return edition
  }
}

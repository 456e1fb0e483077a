import type { TransactionSql } from 'postgres'

import type { Role } from '../../auth/accounts.ts'

/** The password of every account that the command adds. Everybody knows it. */
export const PASSWORD = 'demo-password'

/** The accounts to sign in as: what stands before the @ of their addresses, which are the same whatever is added. */
export const SIGN_INS: { role: Role, name: string }[] = [
  { role: 'ADMIN', name: 'admin' },
  { role: 'CLUB_HEAD', name: 'head' },
  { role: 'STUDENT', name: 'student' },
]

/** What there is to add, in an order in which it can be. */
export const KINDS = [
  'clubs', 'users', 'events', 'registrations', 'blogs', 'mentors', 'likes', 'testimonials',
] as const

/** How many of each kind. */
export type Amounts = Record<typeof KINDS[number], number>

/** What was added, and the domain of its addresses. */
export interface Seeded {
  added: Amounts
  domain: string
}

/** What keeps apart what is added one time and another: the domain of the addresses, and what follows a club's name. */
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

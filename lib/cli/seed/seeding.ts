import type { Role } from '../../roles.ts'

/** The password of every account that the command adds. It is public. */
export const PASSWORD = 'demo-password'

/** The domain of their emails. */
export const DOMAIN = 'demo.example.org'

/** The accounts to sign in as, which are the same whatever is added. */
export const SIGN_INS: { role: Role, email: string }[] = [
  { role: 'ADMIN', email: `admin@${DOMAIN}` },
  { role: 'CLUB_HEAD', email: `head@${DOMAIN}` },
  { role: 'STUDENT', email: `student@${DOMAIN}` },
]

/** The rows to add, in the order of their foreign keys. */
export const KINDS = [
  'clubs', 'users', 'events', 'registrations', 'blogs', 'mentors', 'likes', 'testimonials',
] as const

/** How many of each kind. */
export type Amounts = Record<typeof KINDS[number], number>

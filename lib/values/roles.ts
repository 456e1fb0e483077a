export const ROLES = ['STUDENT', 'CLUB_HEAD', 'ADMIN'] as const
export type Role = typeof ROLES[number]

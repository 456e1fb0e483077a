/** The roles of accounts, as the contract has them. */
export const ROLES = ['STUDENT', 'CLUB_HEAD', 'ADMIN'] as const
export type Role = typeof ROLES[number]

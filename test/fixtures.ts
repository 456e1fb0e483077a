// Valid request bodies. Replace `clubId` by the id of a club.

export const PASSWORD = 'correct horse'
/** Its cheapest hash. */
export const HASH = '$argon2id$v=19$m=1024,t=2,p=1$Ik8mQbgMWr2VAHOYiKhRmQ$tXxubOl9VszRu1RuXZ8mpN1sXnmA6lNw/urObVqZ3VM'
export const ACCOUNT = { email: 'ada@example.org', password: PASSWORD, firstName: 'Ada', lastName: 'Lovelace' }
export const BLOG = { title: 'A title', content: 'twenty characters or more', imageUrl: 'https://example.org/b.png' }
export const MENTOR = {
  name: 'Grace', expertise: 'COBOL', imageUrl: 'https://example.org/m.png', networkUrl: '', clubId: 'x',
}
export const TESTIMONIAL = { name: 'Grace', content: 'I learned a lot', batchYear: 2026, imageUrl: '' }

/** A picture of one pixel. */
export const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64'
)

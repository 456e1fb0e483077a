// Valid request bodies. Replace `clubId` by the id of a club.

export const PASSWORD = 'correct horse'
export const ACCOUNT = { email: 'ada@example.org', password: PASSWORD, firstName: 'Ada', lastName: 'Lovelace' }
export const BLOG = { title: 'A title', content: 'twenty characters or more', imageUrl: 'https://example.org/b.png' }
export const MENTOR = {
  name: 'Grace', expertise: 'COBOL', imageUrl: 'https://example.org/m.png', networkUrl: '', clubId: 'x',
}
export const TESTIMONIAL = { name: 'Grace', content: 'I learned a lot', batchYear: 2026, imageUrl: '' }
export const EVENT = {
  title: 'A game',
  description: 'Ten games at once',
  data: '2030-01-31T09:30:00.000Z',
  imageUrl: 'https://example.org/e.png',
}

/** A picture of one pixel. */
export const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64'
)

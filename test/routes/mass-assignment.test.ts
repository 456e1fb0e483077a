// Sends bodies with fields that a client may not set. No operation may store them.
import type { Role } from '#lib/auth/accounts.js'
import { hashPassword } from '#lib/auth/passwords.js'
import { createSecretToken, hashSecretToken } from '#lib/auth/secret-tokens.js'
import { assertComplete } from '../assertions.ts'
import { buildWithRoutes, inject, insert, MAIL, nameOf, type Person, person } from '../helper.ts'
import t from '../suite.ts'

const { app, routes } = await buildWithRoutes(t, MAIL)

const [club, strangeClub] = [await insert(app, 'clubs'), await insert(app, 'clubs')]
const [student, head, admin, stranger] = await Promise.all([
  person(app), person(app, 'CLUB_HEAD', { club_id: club }), person(app, 'ADMIN'), person(app),
]) as [Person, Person, Person, Person]
const people: Record<Role, Person> = { STUDENT: student, CLUB_HEAD: head, ADMIN: admin }

/** Fields that a client may not set, unless the operation accepts them. No row has these values otherwise. */
const FOREIGN: Record<string, unknown> = {
  id: '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b',
  role: 'ADMIN',
  status: 'PUBLISHED',
  password: 'a foreign password',
  idpId: 'a foreign person',
  avatar: 'https://foreign.example/avatar.png',
  authorId: stranger.id,
  userId: stranger.id,
  clubHeadId: stranger.id,
  clubId: strangeClub,
  createdAt: '1999-01-01T00:00:00.000Z',
  updatedAt: '1999-01-02T00:00:00.000Z',
  registeredAt: '1999-01-03T00:00:00.000Z',
  date: '1999-01-04T00:00:00.000Z',
  likeCount: 1_234_567,
  registrationCount: 2_345_678,
}

const BLOG = { title: 'A title', content: 'twenty characters or more', imageUrl: 'https://example.org/b.png' }
const MENTOR = { name: 'Grace', expertise: 'COBOL', imageUrl: 'https://example.org/m.png', networkUrl: '' }
const TESTIMONIAL = { name: 'Grace', content: 'I learned a lot', batchYear: 2026, imageUrl: '' }
const EVENT = {
  title: 'A game', description: 'Ten games at once', data: '2030-01-31T09:30:00.000Z', imageUrl: 'https://example.org/e.png',
}

interface Operation {
  /** The role of the sender. */
  as?: Role
  /** Foreign fields that the operation accepts, with valid values. */
  takes?: object
  /** Inserts the row that the path identifies. */
  row?: () => Promise<string>
  /** The fields of a valid body. */
  body?: () => Promise<object>
}

/** All operations that write. */
const OPERATIONS: Record<string, Operation> = {
  'POST /auth/register': {
    takes: { password: 'correct horse' },
    body: async () => ({ email: 'new@example.org', firstName: 'Ada', lastName: 'Lovelace' }),
  },
  'POST /auth/login': {
    takes: { password: 'correct horse' },
    body: async () => {
      const account = { email: 'known@example.org', password: 'correct horse', firstName: 'Ada', lastName: 'Lovelace' }
      await inject(app, 'POST', '/auth/register', account)
      return { email: account.email }
    },
  },

  'POST /blogs/submit': { as: 'STUDENT', body: async () => BLOG },
  'POST /blogs': { as: 'ADMIN', takes: { status: 'ARCHIVED' }, body: async () => BLOG },
  'PUT /blogs/:id': { as: 'ADMIN', takes: { status: 'ARCHIVED' }, row: insertBlog, body: async () => BLOG },
  'POST /blogs/:id/approve': { as: 'ADMIN', takes: { status: 'PUBLISHED' }, row: insertBlog },
  'POST /blogs/:id/archive': { as: 'ADMIN', row: insertBlog },
  'DELETE /blogs/:id': { as: 'ADMIN', row: insertBlog },

  'PUT /users/:id': { as: 'ADMIN', takes: { clubId: club }, row: insertUser, body: async () => ({ firstName: 'Bea' }) },
  'PUT /users/:userId/role': { as: 'ADMIN', row: insertUser, body: async () => ({ newRole: 'CLUB_HEAD' }) },
  'PUT /users/:userId/club': { as: 'ADMIN', takes: { clubId: club }, row: insertUser },
  'DELETE /users/:id': { as: 'ADMIN', row: insertUser },

  'POST /mentors/:mentorId/like': { as: 'STUDENT', row: insertMentor },
  'POST /mentors': { as: 'ADMIN', takes: { clubId: club }, body: async () => MENTOR },
  'PUT /mentors/:id': { as: 'ADMIN', takes: { clubId: club }, row: insertMentor, body: async () => MENTOR },
  'DELETE /mentors/:id': { as: 'ADMIN', row: insertMentor },

  'POST /testimonials': { as: 'ADMIN', body: async () => TESTIMONIAL },
  'PUT /testimonials/:id': { as: 'ADMIN', row: insertTestimonial, body: async () => TESTIMONIAL },
  'DELETE /testimonials/:id': { as: 'ADMIN', row: insertTestimonial },

  'POST /clubs': {
    as: 'ADMIN',
    body: async () => ({ name: 'Bridge', description: 'A club', clubHeadEmail: (await person(app)).email }),
  },

  'POST /events': { as: 'CLUB_HEAD', body: async () => EVENT },
  'PUT /events/:id': { as: 'CLUB_HEAD', takes: { clubId: club }, row: insertEvent, body: async () => EVENT },
  'DELETE /events/:id': { as: 'CLUB_HEAD', row: insertEvent },
  'POST /events/:eventId/register': { as: 'STUDENT', row: insertEvent },

  'POST /account/password/forgot': { body: async () => ({ email: (await person(app)).email }) },
  'POST /account/password/reset': {
    takes: { password: 'battery staple' }, body: async () => ({ token: await insertToken('password') }),
  },
  'POST /account/email/verify': { body: async () => ({ token: await insertToken('email') }) },

  'PUT /me/password': {
    as: 'STUDENT',
    body: async () => {
      await app.sql`UPDATE users SET password = ${await hashPassword('correct horse')} WHERE id = ${student.id}`
      return { currentPassword: 'correct horse', newPassword: 'battery staple' }
    },
  },
  'POST /me/email/verification': {
    as: 'STUDENT',
    body: async () => {
      // The change of the password has ended the token.
      await app.sql`DELETE FROM ended_tokens`
      return {}
    },
  },
  'POST /me/calendar': { as: 'STUDENT' },
  'DELETE /me/calendar': { as: 'STUDENT', row: insertCalendar },
  'DELETE /me/tokens': { as: 'STUDENT' },
  'PUT /me/notifications': {
    as: 'STUDENT',
    body: async () => {
      await app.sql`DELETE FROM ended_tokens`
      return { notifications: { registration: false } }
    },
  },
  'POST /me/events/:id/message': {
    as: 'CLUB_HEAD', row: insertEvent, body: async () => ({ subject: 'Boards', text: 'Bring a board, please.' }),
  },
  'POST /account/unsubscribe/:token': { row: insertMail },
}

/** Not tested: one never succeeds, the other reads only an ID token. */
const EXEMPT = ['DELETE /users/:userId/club', 'POST /auth/google']

t.test('All operations that write are tested here', async t => {
  const writing = routes.filter(({ method }) => ![method].flat().includes('GET')).map(nameOf)
  const entries = [...Object.keys(OPERATIONS), ...EXEMPT]
  assertComplete(t, entries, writing, 'OPERATIONS in test/routes/mass-assignment.test.ts')
})

for (const [operation, { as, takes = {}, row, body }] of Object.entries(OPERATIONS)) {
  t.test(`${operation} stores ${Object.keys(takes).join(', ') || 'none'} of the foreign fields`, async t => {
    const [method, path] = operation.split(' ') as ['POST' | 'PUT' | 'DELETE', string]
    const url = path.replace(/:\w+/, await row?.() ?? '')
    const own = await body?.() ?? {}
    // Also as column names, and as inherited properties.
    const columns = Object.fromEntries(Object.entries(FOREIGN).map(([name, value]) => [toColumn(name), value]))
    const fields = { ...columns, ...FOREIGN, ...takes, ...own, inherited: FOREIGN }
    const payload = JSON.stringify(fields).replace('"inherited"', '"__proto__"')

    const before = await allRows()
    const response = await inject(app, method, url, payload, {
      'content-type': 'application/json', ...as && { authorization: `Bearer ${people[as].token}` },
    })
    t.ok(response.statusCode < 300, `it succeeds: ${response.statusCode} ${response.body}`)
    const after = await allRows()
    const changed = [...after].filter(row => !before.has(row)).join('\n')
    const taken = Object.values(takes)
    const effective = Object.entries(FOREIGN)
      .filter(([, value]) => !taken.includes(value) && (changed + response.body).includes(String(value)))
    t.strictSame(effective, [], 'no other has an effect', { changed, response: response.body })
    for (const [name, value] of Object.entries(takes)) {
      // A password is stored as a hash.
      if (name !== 'password') t.ok(changed.includes(String(value)), `${name} is stored`)
    }
  })
}

function toColumn (name: string) {
  return name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

/** All rows of all tables, as text. */
async function allRows () {
  const tables = await app.sql<{ name: string }[]>`
    SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'
  `
  const rows = await Promise.all(tables.map(({ name }) =>
    app.sql<{ text: string }[]>`SELECT ${name} || to_jsonb(row)::text AS text FROM ${app.sql(name)} AS row`))
  return new Set(rows.flat().map(({ text }) => text))
}

function insertBlog () {
  return insert(app, 'blogs', { author_id: student.id })
}

async function insertUser () {
  return (await person(app)).id
}

function insertMentor () {
  return insert(app, 'mentors', { club_id: club })
}

function insertTestimonial () {
  return insert(app, 'testimonials')
}

async function insertCalendar () {
  await app.sql`INSERT INTO calendar_tokens VALUES (${student.id}, 'x') ON CONFLICT DO NOTHING`
  return ''
}

/** Inserts a mail to a new user; returns the token in it. */
async function insertMail () {
  const token = createSecretToken()
  await insert(app, 'mails', {
    kind: 'event-reminder', bulk: true, user_id: await insertUser(), data: {}, token_hash: hashSecretToken(token),
  })
  return token
}

/** Inserts the token of a mail to a new user. */
async function insertToken (purpose: string) {
  const token = createSecretToken()
  await app.sql`
    INSERT INTO account_tokens VALUES (${await insertUser()}, ${purpose}, ${hashSecretToken(token)}, '2999-01-01')
  `
  return token
}

function insertEvent () {
  return insert(app, 'events', { date: new Date('2030-01-01'), club_id: club })
}

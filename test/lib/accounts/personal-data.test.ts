// The export and the erasure of an account, compared with the catalogue of the database: whoever adds a column about a
// person decides here where the export has it.
import { eraseUser } from '#lib/accounts/erasure.js'
import { PNG } from '../../fixtures.ts'
import { allRows, build, insert, person } from '../../helper.ts'
import t from '../../suite.ts'

const app = await build(t)
const { sql } = app

/** Not in the export: hashes and secrets. */
const SECRET = null
/** Not in the export: how the service does its work. */
const WORK = null
/** Not in the export: the other side of the row is the person's. */
const OWN = null

/** The tables with data about a person, the column with the id of the person, and where the export has each column. */
const TABLES: Record<string, { person: string, columns: Record<string, string | null> }> = {
  users: {
    person: 'id',
    columns: {
      id: 'account.id',
      email: 'account.email',
      email_verified_at: 'account.emailVerifiedAt',
      password: SECRET,
      idp_id: 'account.providerId',
      avatar: 'account.avatar',
      first_name: 'account.firstName',
      last_name: 'account.lastName',
      role: 'account.role',
      club_id: 'account.club.id',
      created_at: 'account.createdAt',
      updated_at: 'account.updatedAt',
    },
  },
  account_tokens: {
    person: 'user_id',
    columns: { user_id: OWN, purpose: WORK, hash: SECRET, expires_at: WORK, new_email: 'account.newEmail' },
  },
  blogs: {
    person: 'author_id',
    columns: {
      id: 'blogs.0.id',
      title: 'blogs.0.title',
      content: 'blogs.0.content',
      image_url: 'blogs.0.imageUrl',
      status: 'blogs.0.status',
      author_id: OWN,
      created_at: 'blogs.0.createdAt',
      updated_at: 'blogs.0.updatedAt',
      published_at: 'blogs.0.publishedAt',
    },
  },
  calendar_tokens: {
    person: 'user_id', columns: { user_id: OWN, token_hash: SECRET, created_at: 'calendar.createdAt' },
  },
  club_members: {
    person: 'user_id',
    columns: {
      user_id: OWN,
      club_id: 'clubs.0.id',
      state: 'clubs.0.state',
      message: 'clubs.0.message',
      reason: 'clubs.0.reason',
      news: 'clubs.0.news',
      changed_at: 'clubs.0.changedAt',
      refused_at: 'clubs.0.refusedAt',
      offered: 'clubs.0.offered',
      // The id of somebody else.
      offered_by: null,
      offered_at: 'clubs.0.offeredAt',
    },
  },
  emails: {
    person: 'user_id',
    columns: {
      id: WORK,
      template: 'emails.0.template',
      bulk: WORK,
      // Who caused the email may be somebody else.
      network: null,
      user_id: OWN,
      // Ids of what the email is about.
      data: null,
      key: WORK,
      status: 'emails.0.status',
      due_at: WORK,
      claimed_at: WORK,
      attempts: WORK,
      error: WORK,
      token_hash: SECRET,
      created_at: 'emails.0.createdAt',
      settled_at: 'emails.0.sentAt',
    },
  },
  event_messages: {
    person: 'sender_id',
    columns: {
      id: WORK,
      event_id: 'messages.0.event.id',
      sender_id: OWN,
      subject: 'messages.0.subject',
      text: 'messages.0.text',
      created_at: 'messages.0.sentAt',
      // Of an event that was deleted.
      event_title: null,
    },
  },
  event_registrations: {
    person: 'user_id',
    columns: {
      id: 'registrations.0.id',
      user_id: OWN,
      event_id: 'registrations.0.event.id',
      registered_at: 'registrations.0.registeredAt',
    },
  },
  idempotency_keys: {
    person: 'user_id',
    columns: { user_id: OWN, key: SECRET, request: SECRET, created_ids: WORK, created_at: WORK },
  },
  mentor_likes: {
    person: 'user_id',
    columns: { user_id: OWN, mentor_id: 'likes.0.mentor.id', created_at: 'likes.0.likedAt' },
  },
  notifications: {
    person: 'user_id',
    columns: {
      user_id: OWN,
      registration: 'notifications.registration',
      event_changed: 'notifications.eventChanged',
      event_cancelled: 'notifications.eventCancelled',
      event_reminder: 'notifications.eventReminder',
      event_message: 'notifications.eventMessage',
      blog_decision: 'notifications.blogDecision',
      club: 'notifications.club',
      club_news: 'notifications.clubNews',
    },
  },
  pictures: {
    person: 'user_id',
    columns: {
      id: 'pictures.0.id',
      user_id: OWN,
      // `GET /pictures/:id` has the files.
      large: null,
      small: null,
      width: 'pictures.0.width',
      height: 'pictures.0.height',
      created_at: 'pictures.0.createdAt',
      unused_since: WORK,
    },
  },
}

/** Adds a person with a row in each table, whose columns have values of their own. */
async function addPerson () {
  const [club, other] = [await insert(app, 'clubs'), await person(app)]
  const ada = await person(app, 'ADMIN', {
    email_verified_at: new Date('2026-01-01'), idp_id: 'subject', avatar: 'https://example.org/a.png', club_id: club,
  })
  await sql`UPDATE clubs SET club_head_id = ${ada.id} WHERE id = ${club}`
  await sql`
    UPDATE club_members SET
      message = 'I play chess.', reason = 'The room is full.', news = false, refused_at = '2026-01-02',
      offered = 'head', offered_by = ${other.id}, offered_at = '2026-01-03'
    WHERE user_id = ${ada.id}
  `
  await sql`
    INSERT INTO club_members (user_id, club_id, state, offered, offered_by, offered_at)
    VALUES (${other.id}, ${club}, 'member', 'deputy', ${ada.id}, '2026-01-04')
  `
  const event = await insert(app, 'events', { club_id: club })
  const mentor = await insert(app, 'mentors', { club_id: club })
  const registration = await insert(app, 'event_registrations', { user_id: ada.id, event_id: event })
  await sql`
    INSERT INTO event_answers (registration_id, event_id, since, answered_at)
    VALUES (${registration}, ${event}, '2026-01-05', '2026-01-06')
  `
  await insert(app, 'blogs', { author_id: ada.id, image_url: 'https://example.org/b.png', status: 'PUBLISHED' })
  await insert(app, 'event_messages', { event_id: event, sender_id: ada.id, subject: 'Boards', text: 'Bring a board' })
  await insert(app, 'pictures', { user_id: ada.id, large: PNG, small: PNG, width: 3, height: 2 })
  await sql`INSERT INTO mentor_likes VALUES (${ada.id}, ${mentor})`
  await sql`
    INSERT INTO notifications VALUES (${ada.id}, false, false, false, false, false, false, false, false)
  `
  await sql`
    INSERT INTO emails (template, bulk, user_id, data, status, settled_at)
    VALUES ('test', false, ${ada.id}, '{}', 'sent', '2026-01-07')
  `
  await sql`INSERT INTO account_tokens VALUES (${ada.id}, 'email', 'a hash', now(), 'new@example.org')`
  await sql`INSERT INTO calendar_tokens VALUES (${ada.id}, 'a hash')`
  await sql`INSERT INTO idempotency_keys VALUES (${ada.id}, 'a key', 'a request')`
  return { ada, club }
}

const valueAt = (data: any, path: string) => path.split('.').reduce((value, name) => value?.[name], data)

/** Times have a different format in the export. */
const comparable = (value: unknown) =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value) ? Date.parse(value) : value

t.test('The export has every column about a person, and the erasure deletes the rows', async t => {
  const { ada, club } = await addPerson()
  const references = await sql<{ table: string, column: string }[]>`
    SELECT conrelid::regclass::text AS table, attname AS column
    FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
    WHERE contype = 'f' AND confrelid = 'users'::regclass ORDER BY 1, 2
  `
  const known = Object.entries(TABLES).filter(([table]) => table !== 'users').map(([table, { person }]) => ({
    table, column: person,
  }))
  t.strictSame([...references].filter(({ column }) => column !== 'offered_by'), known)
  const data = (await ada.inject('GET', '/me/export')).json()
  for (const [table, { person, columns }] of Object.entries(TABLES)) {
    const rows = await sql<{ row: Record<string, unknown> }[]>`
      SELECT to_jsonb(stored) AS row FROM ${sql(table)} AS stored WHERE ${sql(person)} = ${ada.id}
    `
    t.equal(rows.length, 1, table)
    const { row } = rows[0]!
    t.strictSame(Object.keys(row).sort(), Object.keys(columns).sort(), table)
    for (const [column, path] of Object.entries(columns)) {
      if (path) t.strictSame(comparable(valueAt(data, path)), comparable(row[column]), `${table}.${column}`)
    }
  }
  const { registrations: [registration], clubs, offers } = data
  t.match(registration, { inLineSince: '2026-01-05T00:00:00.000Z', answeredAt: '2026-01-06T00:00:00.000Z' })
  t.match([clubs[0].office, offers], ['head', [
    { club: { id: club }, office: 'deputy', offeredAt: '2026-01-04T00:00:00.000Z' },
  ]])

  await person(app, 'ADMIN')
  await eraseUser(sql, ada.email, { withBlogs: true })
  for (const { table, column } of references) {
    t.strictSame([...await sql`SELECT FROM ${sql(table)} WHERE ${sql(column)} = ${ada.id}`], [], `${table}.${column}`)
  }
  const rest = [...await allRows(app)].filter(row => row.includes(ada.id)).map(row => row.split('{')[0])
  t.strictSame(rest, ['revoked_tokens'])
})

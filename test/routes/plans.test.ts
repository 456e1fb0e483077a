import postgres, { type Row } from 'postgres'
import type { Test } from 'tap'

import * as accounts from '#lib/accounts/accounts.js'
import { PLANNING, type Sql } from '#lib/database/pools.js'
import type { CachedQuery } from '#lib/cache/index.js'
import { createSnapshotCache } from '#lib/cache/snapshot-cache.js'
import { readLongList } from '#lib/database/long-lists.js'
import { createAccountLink } from '#lib/email/account-links.js'
import * as revokedTokens from '#lib/auth/revoked-tokens.js'
import * as batches from '#lib/email/batches.js'
import * as emails from '#lib/email/emails.js'
import type { Outbox } from '#lib/email/outbox.js'
import * as auth from '#routes/auth/queries.js'
import * as agenda from '#routes/agenda/queries.js'
import * as blogs from '#routes/blogs/queries.js'
import * as events from '#routes/events/queries.js'
import * as exports from '#routes/exports/queries.js'
import * as feeds from '#routes/feeds/queries.js'
import * as profile from '#routes/me/profile/queries.js'
import * as calendar from '#routes/me/calendar/queries.js'
import * as ownSeats from '#routes/me/seats/queries.js'
import * as ownPictures from '#routes/me/pictures/queries.js'
import * as users from '#routes/users/queries.js'
import { clientIn } from '../clients.ts'
import { bearer, buildWithoutSender, createDatabase, inject, MAIL, testConfig } from '../helper.ts'
import { createWorld, OPERATIONS, pathWith, roleFor } from '../operations.ts'
import t from '../suite.ts'

const ROWS = 30_000

/** The statements that were sent, with their parameters. */
const sent: { query: string, parameters: unknown[] }[] = []

const debug = (_connection: number, query: string, parameters: unknown[]) => { sent.push({ query, parameters }) }

const DATABASE_URL = await createDatabase()
const sql: Sql = postgres(DATABASE_URL, {
  max: 1,
  fetch_types: false,
  connection: PLANNING,
  types: { uuid: { to: 2950, from: [2950], serialize: String, parse: String } },
  debug,
})
t.teardown(() => sql.end())

// A sequential scan of a small table is fine, so these are big, with a thousand clubs. Inserted without triggers and
// foreign key checks, which take most of the time.
await sql.unsafe(`
  SET session_replication_role = replica;
  INSERT INTO clubs (name, description) SELECT 'Club ' || n, 'A club' FROM generate_series(1, ${ROWS} / 100) AS n;
  INSERT INTO users (email, password, first_name, last_name, club_id)
    SELECT 'user' || n || '@example.org', '!', 'Ada', 'Lovelace', club.id
    FROM generate_series(1, ${ROWS}) AS n
      JOIN (SELECT id, row_number() OVER () AS number FROM clubs) AS club ON club.number = 1 + n % (${ROWS} / 100);
  INSERT INTO club_details SELECT id, 'open' FROM clubs;
  INSERT INTO club_members (user_id, club_id, state) SELECT id, club_id, 'member' FROM users;
  INSERT INTO club_members (user_id, club_id, state)
    SELECT users.id, clubs.id, 'requested' FROM users CROSS JOIN (SELECT id FROM clubs ORDER BY id LIMIT 1) AS clubs
    ON CONFLICT DO NOTHING;
  INSERT INTO blogs (title, content, author_id, status)
    SELECT 'A blog', 'Its content', id, 'PUBLISHED' FROM users;
  INSERT INTO mentors (name, expertise, image_url, club_id)
    SELECT 'Mentor ' || email, 'Chess', 'https://example.org', club_id FROM users;
  INSERT INTO mentor_likes (user_id, mentor_id)
    SELECT u.id, m.id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM users) AS u
      JOIN (SELECT id, row_number() OVER (ORDER BY id DESC) AS n FROM mentors) AS m USING (n);
  INSERT INTO testimonials (name, batch_year, content) SELECT 'Ada', 2020, 'It was good' FROM users;
  INSERT INTO events (title, description, date, club_id)
    SELECT 'An event', 'Its description', now() + random() * interval '1 year', club_id FROM users;
  INSERT INTO event_registrations (user_id, event_id)
    SELECT u.id, e.id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM users) AS u
      JOIN (SELECT id, row_number() OVER (ORDER BY id DESC) AS n FROM events) AS e USING (n);
  INSERT INTO event_registration_counts SELECT event_id, 0, 1 FROM event_registrations;
  INSERT INTO event_details (event_id, duration_ms, capacity)
    SELECT id, CASE WHEN random() < 0.01 THEN 9e7 ELSE 3.6e6 END, 1 FROM events;
  INSERT INTO event_answers SELECT id, event_id, registered_at FROM event_registrations;
  INSERT INTO event_decline_counts SELECT id, 0, 0 FROM events;
  INSERT INTO mentor_like_counts SELECT mentor_id, 0, 1 FROM mentor_likes;
  INSERT INTO rate_limits SELECT 'failed-sign-ins-for-account', email || ' 192.0.2.1', 1,
    now() + (random() - 0.5) * interval '1 hour' FROM users;
  INSERT INTO calendar_tokens SELECT id, id::text FROM users;
  INSERT INTO account_tokens SELECT id, 'password', id::text, now() + random() * interval '1 hour' FROM users;
  INSERT INTO account_tokens SELECT id, 'email', 'email ' || id, now() + random() * interval '1 hour' FROM users;
  INSERT INTO emails (template, bulk, user_id, data, status, settled_at)
    SELECT 'test', false, id, '{}', 'sent', now() FROM users;
  INSERT INTO revoked_tokens (user_id, revoked_at) SELECT id, now() - random() * interval '30 days' FROM users;
  INSERT INTO notifications (user_id) SELECT id FROM users;
  INSERT INTO email_batches (template, data, user_ids, due_at)
    SELECT 'event-message', '{}', ARRAY[id], now() + random() * interval '1 day' FROM users;
  INSERT INTO event_reminders SELECT id FROM events;
  INSERT INTO event_reminders SELECT gen_random_uuid() FROM generate_series(1, 5 * ${ROWS});
  INSERT INTO event_messages (event_id, sender_id, subject, text, created_at)
    SELECT e.id, u.id, 'A message', 'Its text', now() - random() * interval '1 day'
    FROM (SELECT id, row_number() OVER () AS n FROM events) AS e
      JOIN (SELECT id, row_number() OVER () AS n FROM users) AS u USING (n);
  INSERT INTO pictures (user_id, large, small, width, height, unused_since)
    SELECT id, 'large', 'small', 1, 1, now() - random() * interval '1 day' FROM users;
  SET session_replication_role = origin;
`)
// An event with many registrations. Most people wait for one of its seats.
const CROWD = 10_000
await sql.unsafe(`
  UPDATE event_details SET capacity = 100 WHERE event_id = (SELECT id FROM events ORDER BY id DESC LIMIT 1);
  INSERT INTO event_registrations (user_id, event_id)
    SELECT users.id, (SELECT id FROM events ORDER BY id DESC LIMIT 1) FROM users ORDER BY users.id DESC LIMIT ${CROWD}
    ON CONFLICT DO NOTHING;
`)
await sql.unsafe('VACUUM ANALYZE')

const [row] = await sql`
  SELECT
    (SELECT id FROM users ORDER BY id LIMIT 1) AS user,
    (SELECT id FROM clubs ORDER BY id LIMIT 1) AS club,
    (SELECT id FROM blogs ORDER BY id LIMIT 1) AS blog,
    (SELECT id FROM mentors ORDER BY id LIMIT 1) AS mentor,
    (SELECT id FROM testimonials ORDER BY id LIMIT 1) AS testimonial,
    (SELECT id FROM events ORDER BY id LIMIT 1) AS event,
    (SELECT id FROM pictures WHERE user_id = (SELECT id FROM users ORDER BY id LIMIT 1)) AS picture,
    (SELECT id FROM event_registrations ORDER BY id LIMIT 1) AS registration
`
const id = row as Record<
  'user' | 'club' | 'blog' | 'mentor' | 'testimonial' | 'event' | 'picture' | 'registration', string
>
const head = { id: id.user, role: 'CLUB_HEAD' } as const
const admin = { id: id.user, role: 'ADMIN' } as const
const AGENDA = { clubs: null, from: new Date().toISOString(), to: null, limit: 20, after: null }
const email = 'user1@example.org'
const name = { firstName: 'Grace', lastName: 'Hopper' }

const PICTURES = 'https://api.example.org/pictures/'
const NONE = '00000000-0000-4000-8000-000000000000'

const EMAIL = { id: NONE, template: 'test', data: {}, key: null, attempts: 0, createdAt: new Date() }
const outbox = {
  canLink: true,
  canVerify: true,
  enqueue: (...rest) => emails.enqueueEmails(sql, ...rest),
  enqueueBatch: (...rest) => batches.enqueueBatch(sql, ...rest),
} as Outbox

/** Runs a cached query. The cache is too small for any entry. */
const cache = createSnapshotCache({ sql, shortSql: sql, maxBytes: 1 })
const read = (query: CachedQuery) => cache.get('', () => query, [clientIn('')])

/** Statements that read or write single rows, or one page, and that no operation in test/operations.ts sends. */
const others: Record<string, () => Promise<unknown>> = {
  'eventsQuery, earliest first': () => read(events.eventsQuery(sql, 2, 12, 'asc')),
  'agendaQuery, of a club': () => read(agenda.agendaQuery(sql, { ...AGENDA, clubs: [id.club] })),
  'agendaQuery, second page': () =>
    read(agenda.agendaQuery(sql, { ...AGENDA, to: '2999-01-01T00:00:00.000Z', after: { time: 'now', id: id.event } })),
  ownCalendarQuery: () => read(feeds.ownCalendarQuery(sql, undefined, id.user)),
  findBlogs: () => blogs.findBlogs(sql, PICTURES, id.blog),
  'allBlogsQuery, in batches': () => readLongList(work => work(sql), blogs.allBlogsQuery(sql)),
  'usersQuery, in batches': () => readLongList(work => work(sql), users.usersQuery(sql)),
  'registrationsOfEventQuery, in batches': () =>
    readLongList(work => work(sql), events.registrationsOfEventQuery(sql, admin, id.event)),
  allUsers: async () => exports.allUsers(sql, { time: 'now', id: id.user }),
  'setProfile, with a picture': () => profile.setProfile(sql, PICTURES, id.user, { ...name, avatar: id.picture }),
  'deletePicture, which is used': () => ownPictures.deletePicture(sql, head, id.picture, true),
  'changeEvent, of an event with registrations': () =>
    agenda.changeEvent(sql, outbox, { user: admin, id: id.event, changes: { capacity: 3, place: 'x' } }),
  // The tokens of all users were revoked.
  'replaceCalendar, with a revoked token': () => calendar.replaceCalendar(sql, { id: id.user }, 'x').catch(() => {}),
  signInWithIdentity: () => auth.signInWithIdentity(sql, outbox, {
    ...name, id: 'a person', avatar: null, email: 'sign-in@example.org',
  }),
  'signInWithIdentity, reclaiming': () =>
    auth.signInWithIdentity(sql, outbox, { ...name, id: 'a person', avatar: null, email }),
  createAccount: () => accounts.createAccount(sql, { ...name, email: 'cli@example.org', password: '!', role: 'ADMIN' }),
  setRole: () => accounts.setRole(sql, email, 'ADMIN'),
  setPassword: () => accounts.setPassword(sql, email, 'correct horse'),
  signOut: () => accounts.signOut(sql, email),
  epochsOf: async () => sql`SELECT ${revokedTokens.epochsOf(sql, [id.user, id.club])}`,
  createAccountLink: () => createAccountLink(
    { ...EMAIL, userId: id.user },
    {
      sql,
      config: testConfig({ FRONTEND_URL: 'https://app.example.org' }),
      recipient: { ...name, email, isVerified: true },
    },
    'password', sql`true`
  ),
  claimEmails: () => emails.claimEmails(sql, { account: 10, bulk: 10 }),
  findRecipient: () => emails.findRecipient(sql, id.user),
  recordOutcomes: () => emails.recordOutcomes(sql, [{ id: NONE, status: 'sent', attempts: 1 }]),
  deleteOldEmails: () => emails.deleteOldEmails(sql),
  countEmails: () => emails.countEmails(sql),
  findWork: () => batches.findWork(sql, 24),
  writeReminders: () => batches.writeReminders(sql, 24),
  writeEmails: () => batches.writeEmails(sql),
}

/**
 * Operations that read whole tables, or send no statement here. An erasure counts testimonials and mentors by a name.
 * `others` has the statements of the identity provider and of calendars.
 */
const EXEMPT = [
  'GET /blogs', 'GET /blogs/admin', 'GET /clubs', 'GET /feeds/events.ics', 'GET /mentors', 'GET /users',
  'GET /users/analytics', 'GET /exports/users.csv', 'DELETE /account/:id', 'DELETE /me',
  'GET /live', 'DELETE /users/:userId/club', 'POST /auth/google', 'GET /auth/google/start', 'GET /auth/google/callback',
  'GET /feeds/me/:token.ics',
]

// Everything that waits comes before the first test, because tests run while this file waits.
const [last] = await sql`
  SELECT event_id AS event, user_id AS user, id AS registration FROM event_registrations
  WHERE event_id = (SELECT id FROM events ORDER BY id DESC LIMIT 1) ORDER BY registered_at DESC, id LIMIT 1
`
const crowd = last as Record<'event' | 'user' | 'registration', string>
const exported = exports.registrantsOf(crowd.event)
const [firstRow] = await exported(sql, { time: 'infinity', id: NONE })

// The statements of a sender would be among those of an operation that takes longer.
const app = await buildWithoutSender(t, { DATABASE_URL, ...MAIL })
Object.assign(app.sql.options, { debug })

function toLiteral (value: unknown) {
  if (value === null) return 'NULL'
  const text = Buffer.isBuffer(value) ? `\\x${value.toString('hex')}` : String(value)
  return `'${text.replaceAll("'", "''")}'`
}

/** Explains the statements that were sent, as they run in the service: with generic plans. Changes nothing. */
async function explainSent (t: Test, options = 'COSTS') {
  const statements = sent.filter(({ query }) => !/^(begin|commit|rollback)/.test(query))
  t.not(statements.length, 0)
  const plans: Row[][] = []
  for (const { query, parameters } of statements) {
    await sql.unsafe(`PREPARE statement AS ${query}`)
    const values = parameters.map(toLiteral)
    const execute = `EXECUTE statement ${values.length > 0 ? `(${values})` : ''}`
    const undone = new Error('Undo')
    await sql.begin(async sql => {
      plans.push(await sql.unsafe(`EXPLAIN (${options}) ${execute}`))
      throw undone
    }).catch(error => { if (error !== undone) throw error })
    await sql`DEALLOCATE statement`
  }
  return plans.map(lines => lines.map(line => line['QUERY PLAN']))
}

/** Asserts that the statements that were sent read only the rows that they need. */
async function assertPlans (t: Test) {
  for (const lines of await explainSent(t)) {
    t.notMatch(lines.join('\n'), /Seq Scan on (?!clubs|club_details|row_counts)/)
    // An ORDER BY that means the text of a date in the response, not its column.
    t.notMatch(lines.join('\n'), /Sort Key: .*(to_char|iso8601)/)
  }
}

for (const [name, run] of Object.entries(others)) {
  t.test(`${name} reads only the rows that it needs`, async t => {
    sent.length = 0
    await run()
    await assertPlans(t)
  })
}

for (const [name, operation] of Object.entries(OPERATIONS)) {
  if (EXEMPT.includes(name)) continue
  t.test(`${name} reads only the rows that it needs`, async t => {
    const world = await createWorld(app)
    const { id = '', body } = await operation.given?.(world) ?? {}
    const role = roleFor(operation)
    const [method, path] = name.split(' ') as ['POST', string]
    const { type } = operation
    const payload = type ? operation.body : operation.body && { ...operation.body, ...body }
    sent.length = 0
    const { statusCode } = await inject(app, method, pathWith(path, id), payload, {
      ...role && bearer(world.people[role].token), ...type && { 'content-type': type },
    })
    t.ok(statusCode < 300, `${statusCode}`)
    await assertPlans(t)
  })
}

/** Statements about the event with many registrations, with the number of times that they may read its line. */
const crowded: Record<string, [() => PromiseLike<unknown>, number]> = {
  // Once for the list, and once for the people whom a cancellation reaches.
  seatsQuery: [() => read(agenda.seatsQuery(sql, admin, crowd.event, true)), 2],
  agendaQuery: [() => read(agenda.agendaQuery(sql, AGENDA)), 0],
  agendaEventQuery: [() => read(agenda.agendaEventQuery(sql, crowd.event)), 0],
  seatsOfUserQuery: [() => read(ownSeats.seatsOfUserQuery(sql, crowd.user)), 0],
  ownCalendarQuery: [() => read(feeds.ownCalendarQuery(sql, undefined, crowd.user)), 0],
  'registrantsOf, first batch': [() => exports.registrantsOf(crowd.event)(sql, { time: 'infinity', id: NONE }), 0],
  'registrantsOf, next batch': [() => exported(sql, firstRow!), 0],
  insertRegistration: [() => events.insertRegistration(sql, outbox, id.user, crowd.event), 0],
  setComing: [() => ownSeats.setComing(sql, outbox, { userId: crowd.user, eventId: crowd.event, coming: false }), 0],
  changeEvent: [
    () => agenda.changeEvent(sql, outbox, { user: admin, id: crowd.event, changes: { capacity: 101, place: 'x' } }), 1,
  ],
  removeSeat: [
    () => agenda.removeSeat(sql, outbox, { user: admin, id: crowd.event, registrationId: crowd.registration }), 0,
  ],
}

interface PlanNode {
  'Shared Hit Blocks': number
  'Actual Rows': number
  'Actual Loops': number
  Plans?: PlanNode[]
}

/** The largest number of rows that a node of a plan handles. */
const mostRows = (node: PlanNode): number =>
  Math.max(node['Actual Rows'] * node['Actual Loops'], ...(node.Plans ?? []).map(mostRows))

for (const [operation, [run, lines]] of Object.entries(crowded)) {
  t.test(`${operation} with ${CROWD} registrations reads the line ${lines} times at most`, async t => {
    sent.length = 0
    await run()
    for (const [[{ Plan: plan }]] of await explainSent(t, 'ANALYZE, BUFFERS, FORMAT JSON')) {
      // A row of the line is found by two indexes, and its person by a third.
      t.ok(plan['Shared Hit Blocks'] < 2000 + 8 * lines * CROWD, `${plan['Shared Hit Blocks']} blocks`)
      t.ok(mostRows(plan) <= 1.1 * CROWD, `${mostRows(plan)} rows`)
    }
  })
}

t.test('If everybody has a seat, nobody reads the line', async t => {
  await sql`UPDATE event_details SET capacity = ${2 * CROWD} WHERE event_id = ${crowd.event}`
  sent.length = 0
  await read(ownSeats.seatsOfUserQuery(sql, crowd.user))
  await read(agenda.agendaEventQuery(sql, crowd.event))
  for (const [[{ Plan: plan }]] of await explainSent(t, 'ANALYZE, BUFFERS, FORMAT JSON')) {
    t.ok(mostRows(plan) <= 10, `${mostRows(plan)} rows`)
  }
})

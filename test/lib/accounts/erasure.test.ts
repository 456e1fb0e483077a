import { randomUUID } from 'node:crypto'

import { ROLES } from '#lib/values/roles.js'
import { createLogger } from '#lib/http/logger.js'
import { eraseUser, IS_FORMER_MEMBER } from '#lib/accounts/erasure.js'
import userCommand from '#lib/cli/user.js'
import { enqueueEmails } from '#lib/email/emails.js'
import { assertMessage } from '../../assertions.ts'
import { PNG } from '../../fixtures.ts'
import { allRows, build, inject, insert, MAIL, person, untilBlocked } from '../../helper.ts'
import { call } from '../../process.ts'
import t, { type Test } from '../../suite.ts'

const log: string[] = []
const app = await build(t, {}, createLogger('trace', { write (line: string) { log.push(line) } }))
const { DATABASE_URL } = app.config
const { sql } = app

const user = (...args: string[]) => call(userCommand, { DATABASE_URL }, { args })

const club = await insert(app, 'clubs')

t.test('The former member is deleted only together with its posts', async t => {
  const [{ id }] = await sql<[{ id: string }]>`
    INSERT INTO users (email, password, first_name, last_name) VALUES ('former-member', '!', 'Former', 'member')
    RETURNING id
  `
  await insert(app, 'blogs', { status: 'PUBLISHED', author_id: id })
  const { code, stderr } = await user('erase', '--email', 'former-member')
  t.strictSame([code, stderr], [1, `${IS_FORMER_MEMBER}\n`])
  const admin = await person(app, 'ADMIN')
  assertMessage(t, await admin.inject('DELETE', `/account/${id}`), 409, IS_FORMER_MEMBER)
  t.equal((await user('erase', '--email', 'former-member', '--with-blogs')).code, 0)
  t.strictSame([...await sql`SELECT FROM users WHERE id = ${id}`], [])
})

/** A user with a unique name, and a row in every table that references users. */
async function addActivePerson (role: typeof ROLES[number] = 'STUDENT') {
  const [firstName, lastName] = ['F', 'L'].map(letter => `${letter}${randomUUID().replaceAll('-', '')}`)
  const ada = await person(app, role, {
    email: `${randomUUID()}@erase.example.org`, first_name: firstName, last_name: lastName, club_id: club,
  })
  await sql`UPDATE clubs SET club_head_id = ${ada.id}`
  for (const status of ['DRAFT', 'PUBLISHED', 'ARCHIVED']) {
    const picture = await insert(app, 'pictures', { user_id: ada.id, large: PNG, small: PNG, width: 1, height: 1 })
    await insert(app, 'blogs', { status, author_id: ada.id, image_url: `https://api.example.org/pictures/${picture}` })
  }
  for (let n = 0; n < 3; n++) {
    const event = await insert(app, 'events', { club_id: club })
    await ada.inject('POST', `/events/${event}/register`)
    await insert(app, 'event_messages', { event_id: event, sender_id: ada.id, subject: lastName, text: '' })
    await ada.inject('POST', `/mentors/${await insert(app, 'mentors', { club_id: club })}/like`)
  }
  await ada.inject('POST', '/me/calendar')
  await ada.inject('PUT', '/me/notifications', { notifications: { eventReminder: false } })
  await sql`${enqueueEmails(sql, 'password-changed', sql`
    SELECT ${ada.id}::uuid AS user_id, '{}'::jsonb AS data, NULL AS key
  `, ada.id)}`
  await sql`INSERT INTO account_tokens VALUES (${ada.id}, 'password', ${ada.id}, now() + interval '1 hour')`
  await inject(app, 'POST', '/auth/login', { email: ada.email, password: 'wrong' })
  return { ...ada, words: [ada.email, firstName!, lastName!] }
}

const blogsOf = async (id: string) =>
  (await sql<{ status: string }[]>`SELECT status FROM blogs WHERE author_id = ${id}`).map(({ status }) => status).sort()

const containsAny = (texts: string[], words: string[]) =>
  texts.filter(text => words.some(word => text.toLowerCase().includes(word.toLowerCase())))

const KEPT = 'Not deleted, because pages or published posts show them: 1 pictures.\n'

const result = (verb: string, id: string, published: string, pictures: string) => ({
  code: 0,
  signal: null,
  stdout: `${verb} account ${id}\n  registrations      3\n  likes              3\n  unpublished posts  2\n` +
    `  published posts    ${published}\n  pictures           ${pictures}`,
  stderr: '',
})

/** Asserts that the database contains only the id of the account, which revokes its tokens, and the log no trace. */
async function isErased (t: Test, { id, words }: { id: string, words: string[] }) {
  const rows = [...await allRows(app)]
  t.strictSame(containsAny(rows, words), [], 'not in the database')
  t.strictSame(containsAny(rows, [id]).map(row => row.split('{')[0]), ['revoked_tokens'])
  t.strictSame(containsAny(log, words), [], 'not in the log')
}

t.test('erase deletes the data of a user, and keeps published blogs under the former member', async t => {
  const bystander = await addActivePerson()
  for (const role of ROLES) {
    const ada = await addActivePerson(role)
    t.strictSame(await user('erase', '--email', ada.email),
      result('Erased', ada.id, '1, kept under “Former member”', `2\n${KEPT}`))
    await isErased(t, ada)
  }
  const { blogs } = (await inject(app, 'GET', '/blogs')).json()
  const authors = blogs.map(({ author }: { author: object }) => author)
  const nobody = { firstName: 'Former', lastName: 'member', avatar: null }
  t.equal(authors.filter(({ firstName }: { firstName: string }) => firstName === 'Former').length, ROLES.length)
  t.ok(authors.some((author: object) => JSON.stringify(author) === JSON.stringify(nobody)))
  t.strictSame(await blogsOf(bystander.id), ['ARCHIVED', 'DRAFT', 'PUBLISHED'], 'data of others stays')
})

t.test('erase --with-blogs deletes published blogs as well', async t => {
  const ada = await addActivePerson()
  const [{ before } = {}] = await sql`SELECT count(*)::int AS before FROM blogs`
  t.strictSame(await user('erase', '--email', ada.email, '--with-blogs'), result('Erased', ada.id, '1', '3\n'))
  await isErased(t, ada)
  const [{ after } = {}] = await sql`SELECT count(*)::int AS after FROM blogs`
  t.equal(after, before - 3)
})

t.test('erase --dry-run prints the data that would be deleted, and keeps it', async t => {
  const ada = await addActivePerson()
  const before = await allRows(app)
  t.strictSame(await user('erase', '--email', ada.email, '--dry-run'),
    result('Would erase', ada.id, '1, kept under “Former member”', `2\n${KEPT}`))
  t.strictSame(await user('erase', '--email', ada.email, '--dry-run', '--with-blogs'),
    result('Would erase', ada.id, '1', '3\n'))
  t.strictSame(await allRows(app), before)
})

t.test('erase reports testimonials and mentors with the same name', async t => {
  const grace = await person(app, 'STUDENT', { first_name: 'Grace', last_name: 'Hopper' })
  await sql`INSERT INTO testimonials (name, batch_year, content) VALUES ('Grace Hopper', 2020, 'It was good')`
  const { stdout } = await user('erase', '--email', grace.email)
  t.match(stdout, /not belong to an account: 1 testimonials and 0 mentors with the same name\.$/m)
})

t.test('erase while the user registers for events leaves no trace', async t => {
  const ada = await addActivePerson()
  const events = await sql<{ id: string }[]>`SELECT id FROM events`
  const requests = events.flatMap(({ id }) => [
    ada.inject('POST', `/events/${id}/register`), ada.inject('POST', '/me/calendar'),
  ])
  const [outcome] = await Promise.all([user('erase', '--email', ada.email), ...requests])
  t.equal(outcome.code, 0)
  await isErased(t, ada)
})

t.test('A decision on a post waits for the erasure of its author, without locks', async t => {
  const batch = await build(t, { ...MAIL, DATABASE_URL })
  const admin = await person(batch, 'ADMIN')
  const decide = (id: string, payload?: object) =>
    admin.inject(payload ? 'PUT' : 'POST', `/blogs/${id}${payload ? '' : '/approve'}`, payload)
  for (const payload of [undefined, { status: 'PUBLISHED' }]) {
    const author = await person(batch)
    const draft = await insert(batch, 'blogs', { author_id: author.id })
    const published = await insert(batch, 'blogs', { author_id: author.id, status: 'PUBLISHED' })
    const { decisions } = await sql.begin(async transaction => {
      await transaction`SELECT FROM users WHERE id = ${author.id} FOR UPDATE`
      const decisions = [decide(draft, payload), decide(published, payload)]
      await untilBlocked(sql, 2)
      const locked = await transaction`SELECT FROM blogs WHERE author_id = ${author.id} FOR UPDATE NOWAIT`
      t.equal(locked.length, 2)
      return { decisions }
    })
    t.strictSame((await Promise.all(decisions)).map(({ statusCode }) => statusCode), [200, 200])

    // After the whole erasure, deleted rows are unavailable, and the remaining rows can be changed.
    const again = await person(batch)
    const ids = await Promise.all([{}, { status: 'PUBLISHED' }].map(async fields =>
      insert(batch, 'blogs', { author_id: again.id, ...fields })))
    const responses = Promise.all(ids.map(id => decide(id, payload)))
    t.equal((await user('erase', '--email', again.email)).code, 0)
    t.equal((await responses)[1]!.statusCode, 200)
  }
})

t.test('An erasure locks admins only if it erases an admin', async t => {
  const [student, admin] = [await person(app), await person(app, 'ADMIN')]
  await sql.begin(async transaction => {
    await transaction`SELECT FROM users WHERE id = ${admin.id} FOR NO KEY UPDATE`
    t.equal((await student.inject('DELETE', '/me', { currentPassword: null })).statusCode, 200)
  })
})

t.test('A club whose head is erased at the same time is not created', async t => {
  const [admin, head] = [await person(app, 'ADMIN'), await person(app)]
  const name = randomUUID()
  const { response } = await sql.begin(async transaction => {
    await transaction`DELETE FROM users WHERE id = ${head.id}`
    const response = admin.inject('POST', '/clubs', { name, description: 'Chess', clubHeadEmail: head.email })
    await untilBlocked(sql)
    return { response }
  })
  t.equal((await response).statusCode, 404)
  t.strictSame([...await sql`SELECT FROM clubs WHERE name = ${name}`], [])
})

t.test('export prints the same as GET /me/export', async t => {
  const ada = await addActivePerson()
  const { code, stdout, stderr } = await user('export', '--email', ada.email)
  t.strictSame([code, stderr], [0, ''])
  t.strictSame(JSON.parse(stdout), (await ada.inject('GET', '/me/export')).json())
})

t.test('export and erase fail for an unknown email', async t => {
  for (const command of ['export', 'erase']) {
    const stderr = 'Account not found. Check the email address.\n'
    t.match(await user(command, '--email', 'nobody@example.org'), { code: 1, stderr })
    t.match(await user(command), { code: 1, stderr: `${command} needs --email` })
  }
})

t.test('Erasures during other operations on the users do not deadlock', async t => {
  const lines: string[] = []
  const app = await build(t, { ...MAIL, DATABASE_URL }, createLogger('error', {
    write (line: string) { lines.push(line) },
  }))
  const admin = await person(app, 'ADMIN')
  const clubs = await Promise.all([1, 2].map(() => insert(app, 'clubs')))
  const date = new Date(Date.now() + 86_400_000)
  const [mentors, events] = await Promise.all(['mentors', 'events'].map(async table => Promise.all([1, 2, 3].map(() =>
    insert(app, table, { club_id: clubs[0], ...table === 'events' && { date } })))))
  const people = await Promise.all(Array.from({ length: 10 }, () =>
    person(app, 'STUDENT', { email_verified_at: new Date(), club_id: clubs[0] })))
  const all = await Promise.all(people.map(async one => {
    const blogs = await Promise.all(['DRAFT', 'PUBLISHED'].map(status =>
      insert(app, 'blogs', { author_id: one.id, status })))
    return [
      ...mentors!.flatMap(id => [1, 2, 3].map(() => () => one.inject('POST', `/mentors/${id}/like`))),
      ...events!.map(id => () => one.inject('POST', `/events/${id}/register`)),
      ...blogs.flatMap(id => ['approve', 'archive'].map(how => () => admin.inject('POST', `/blogs/${id}/${how}`))),
      ...clubs.map(clubId => () => admin.inject('PUT', `/users/${one.id}/club`, { clubId })),
      () => admin.inject('POST', '/clubs', { name: one.id, description: 'Chess', clubHeadEmail: one.email }),
      () => inject(app, 'POST', '/account/password/forgot', { email: one.email }),
      () => one.inject('POST', '/me/calendar'),
      () => eraseUser(app.sql, one.email, {}),
    ]
  }))
  const changes = events!.flatMap(id => [1, 2, 3].map(n => () =>
    admin.inject('PUT', `/events/${id}`, { title: `Open day ${n}` })))
  const work = [...all.flat(), ...changes].sort(() => Math.random() - 0.5)
  const workers = Array.from({ length: 40 }, async () => {
    for (let next = work.pop(); next; next = work.pop()) await next()
  })
  await Promise.all(workers)
  t.strictSame(lines.filter(line => /40P01|40001/.test(line)), [])
  t.equal((await sql`SELECT FROM users WHERE id IN ${sql(people.map(({ id }) => id))}`).length, 0)
})

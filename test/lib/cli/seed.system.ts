import { createHash } from 'node:crypto'

import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'

import { build, inject, person } from '../../helper.ts'
import seedCommand from '#lib/cli/seed.js'
import { BLOGS, CLUBS, EVENTS, MENTORS, PEOPLE, TESTIMONIALS } from '#lib/cli/seed/demo-data.js'
import { isUrl } from '#lib/values/formats.js'
import { call, dataDir, postgresOf, run } from '../../process.ts'

const PASSWORD = 'demo-password'
const NOTHING = {
  clubs: 0, users: 0, events: 0, registrations: 0, blogs: 0, mentors: 0, likes: 0, testimonials: 0,
}
const DEMO = {
  clubs: CLUBS.length,
  users: PEOPLE.length,
  events: EVENTS.length,
  registrations: EVENTS.flatMap(({ registered }) => registered).length,
  blogs: BLOGS.length,
  mentors: MENTORS.length,
  likes: MENTORS.flatMap(({ likedBy }) => likedBy).length,
  testimonials: TESTIMONIALS.length,
}

/** Runs `seed` on the database of this service; spaces separate options. */
function seed ({ config: { DATABASE_URL } }: FastifyInstance, options = '', variables: NodeJS.Dict<string> = {}) {
  const args = options.split(' ').filter(Boolean)
  return call(seedCommand, { ADMIN_EMAIL: '', NODE_ENV: 'test', DATABASE_URL, ...variables }, { args })
}

const SIGN_INS = [
  { role: 'ADMIN', email: 'admin@demo.example.org' },
  { role: 'CLUB_HEAD', email: 'head@demo.example.org' },
  { role: 'STUDENT', email: 'student@demo.example.org' },
]

const failed = (line: string) => ({ code: 1, signal: null, stdout: '', stderr: `${line}\n` })

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/** The number of rows of each kind. */
async function count ({ sql }: FastifyInstance) {
  const [counts] = await sql`
    SELECT
      (SELECT count(*)::int FROM clubs) AS clubs,
      (SELECT count(*)::int FROM users) AS users,
      (SELECT count(*)::int FROM events) AS events,
      (SELECT count(*)::int FROM event_registrations) AS registrations,
      (SELECT count(*)::int FROM blogs) AS blogs,
      (SELECT count(*)::int FROM mentors) AS mentors,
      (SELECT count(*)::int FROM mentor_likes) AS likes,
      (SELECT count(*)::int FROM testimonials) AS testimonials
  `
  return counts
}

/** Signs in with the demo password. Returns a function that sends GET requests with the token. */
async function signIn (t: Test, app: FastifyInstance, { email, role }: { email: string, role: string }) {
  const response = await inject(app, 'POST', '/auth/login', { email, password: PASSWORD })
  t.match([response.statusCode, response.json()], [200, { user: { email, role } }], email)
  return (url: string) => read(app, url, { authorization: `Bearer ${response.json().token}` })
}

async function read (app: FastifyInstance, url: string, headers: Record<string, string> = {}) {
  const response = await inject(app, 'GET', url, undefined, headers)
  if (response.statusCode !== 200) throw new Error(response.body)
  return response.json()
}

t.test('adds a demo community', async t => {
  const app = await build(t)
  t.strictSame(await seed(app), {
    code: 0,
    signal: null,
    stdout: `Added ${Object.entries(DEMO).map(([kind, number]) => `${number} ${kind}`).join(', ')}\n` +
      `Sign in with the password ${PASSWORD} as\n` +
      'ADMIN      admin@demo.example.org\n' +
      'CLUB_HEAD  head@demo.example.org\n' +
      'STUDENT    student@demo.example.org\n',
    stderr: '',
  })
  t.strictSame(await count(app), DEMO, 'everyone whom the texts name exists')
  const [, asHead, asStudent] = await Promise.all(SIGN_INS.map(account => signIn(t, app, account)))

  await t.test('past and future events', async t => {
    const { events } = await read(app, '/events?limit=100')
    const coming = EVENTS.filter(({ inDays }) => inDays > 0)
    const titles = (list: { title: string }[]) => list.map(({ title }) => title).sort()
    t.strictSame(titles(events.filter(({ date }: any) => Date.parse(date) > Date.now())), titles(coming))
    t.ok(coming.length > 0 && coming.length < EVENTS.length)
    t.strictSame(
      Object.fromEntries(events.map(({ title, registrationCount }: any) => [title, registrationCount])),
      Object.fromEntries(EVENTS.map(({ title, registered }) => [title, registered.length]))
    )
    t.not((await asHead!('/events/mine')).events.length, 0)
    t.not((await asStudent!('/events/registered')).registrations.length, 0)
  })

  await t.test('a draw that is over, and a draw that waits', async t => {
    const { events } = await read(app, '/agenda')
    const drawsOf = async (title: string) => {
      const { id, comingCount } = events.find((event: { title: string }) => event.title === title)
      return { comingCount, ...(await read(app, `/agenda/${id}/draw`)).draw }
    }
    const over = await drawsOf('Speed languages')
    const lots = new Map<string, string>(over.order.map((id: string) => [id, sha256(`${over.seed} ${id}`)]))
    t.strictSame([lots.size, over.seats], [over.comingCount, 8], 'everybody who registered took part')
    t.strictSame([...lots.values()], [...lots.values()].sort())
    const waiting = await drawsOf('Build a line follower in one evening')
    t.match(waiting, { drawnAt: null, seed: null, order: null, seats: 8 })
    t.equal((await app.sql`SELECT FROM email_batches`).count, 0, 'nobody gets an email')
  })

  await t.test('only rows that the service would accept', async t => {
    for (const { title, content } of BLOGS) t.ok(title.length >= 3 && content.length >= 20, title)
    for (const { title, description } of EVENTS) t.ok(title.length >= 3 && description.length >= 10, title)
    const { mentors } = await read(app, '/mentors')
    const { events } = await read(app, '/events?limit=100')
    for (const { imageUrl } of [...mentors, ...events]) t.ok(isUrl(imageUrl), 'the service requires a picture')
  })

  await t.test('small pictures that load in any app, on any origin, without the internet', async t => {
    const { clubs } = await read(app, '/clubs')
    const { mentors } = await read(app, '/mentors')
    const { events } = await read(app, '/events?limit=100')
    const { blogs } = await read(app, '/blogs')
    const { items } = await read(app, '/testimonials')
    const { user: { avatar } } = await asStudent!('/auth/me')
    const pictures = [...clubs, ...mentors, ...events, ...blogs, ...items].map(({ imageUrl }) => imageUrl)
    for (const picture of [avatar, ...pictures, ...blogs.map(({ author }: any) => author.avatar)]) {
      t.ok(isUrl(picture) && picture.length < 600)
      t.match(picture, /^data:image\/svg\+xml,[\w%.-]+$/, 'nothing that ends a url() of CSS, or an entry of srcset')
    }
    t.ok(new Set(pictures).size > 15, 'not the same everywhere')
    const list = await app.inject({ url: '/events', headers: { 'accept-encoding': 'br' } })
    t.ok(list.rawPayload.length < 4096, `${list.rawPayload.length} bytes for a page of events`)
  })
})

t.test('rejects a database that is not empty', async t => {
  const app = await build(t)
  const refusal = (what: string) =>
    failed(`The database already contains ${what}. To add the demo data anyway, run npm run seed -- --force.`)
  const admin = await person(app, 'ADMIN')
  t.strictSame(await seed(app), refusal('users'))

  const ADMIN_EMAIL = admin.email
  const ofAdmin = { ADMIN_EMAIL, ADMIN_PASSWORD: 'correct horse' }
  const makings = {
    blogs: () => app.sql`INSERT INTO blogs (title, content, author_id) VALUES ('A blog', 'Its content', ${admin.id})`,
    testimonials: () => app.sql`INSERT INTO testimonials (name, batch_year, content) VALUES ('Ada', 2020, 'Good')`,
    clubs: () => app.sql`INSERT INTO clubs (name, description) VALUES ('Chess', 'A club')`,
  }
  for (const [what, make] of Object.entries(makings)) {
    await make()
    const before = await count(app)
    t.strictSame(await seed(app, '', ofAdmin), refusal(what))
    t.strictSame(await count(app), before)
    await app.sql`DELETE FROM ${app.sql(what)}`
  }

  t.match(await seed(app, '', ofAdmin), { code: 0 }, 'the admin of the configuration is ignored')
  t.strictSame(await count(app), { ...DEMO, users: DEMO.users + 1 })
})

t.test('--force adds to existing rows, but the demo accounts only once', async t => {
  const app = await build(t)
  const admin = await person(app, 'ADMIN')
  t.match(await seed(app, '--force'), { code: 0 })
  t.strictSame(await count(app), { ...DEMO, users: DEMO.users + 1 })
  t.same(await app.sql`SELECT role FROM users WHERE id = ${admin.id}`, [{ role: 'ADMIN' }])
  t.strictSame(await seed(app, '--force'),
    failed('The demo data was not added: the database already contains the demo accounts'))
  t.strictSame(await count(app), { ...DEMO, users: DEMO.users + 1 })
})

t.test('--force adds no club whose name exists', async t => {
  const app = await build(t)
  await app.sql`INSERT INTO clubs (name, description) VALUES ('Film Society', 'A real one')`
  t.strictSame(await seed(app, '--force'),
    failed('The demo data was not added: conflicting key value violates exclusion constraint "clubs_name_key"'))
  t.strictSame(await count(app), { ...NOTHING, clubs: 1 })
})

t.test('rejects known passwords in production, unless allowed', async t => {
  const app = await build(t)
  const production = { NODE_ENV: 'production', JWT_SECRET: 'a secret of the tests, long enough' }
  t.strictSame(await seed(app, '', production), failed('The password of the demo accounts is public, so ' +
    'anyone could sign in as an admin. To add them in production anyway, run npm run seed -- --force.'))
  t.strictSame(await count(app), NOTHING)
  const { code, stdout } = await seed(app, '--force --json', production)
  t.strictSame([code, JSON.parse(stdout)], [0, { added: DEMO, password: PASSWORD, signIns: SIGN_INS }])
  t.strictSame(await count(app), DEMO)
})

t.test('reports a failure in one line, and is rolled back', async t => {
  const app = await build(t)
  await app.sql`ALTER TABLE testimonials ADD CONSTRAINT few CHECK (batch_year < 1900)`
  t.strictSame(await seed(app),
    failed('The demo data was not added: new row for relation "testimonials" violates check constraint "few"'))
  t.strictSame(await count(app), NOTHING)
})

t.test('creates the embedded database if there is none, and stops it again', async t => {
  const DATA_DIR = dataDir(t)
  const { code, stdout, stderr } = await run(t, 'dist/lib/cli.js', { DATA_DIR }, { args: ['seed'] })
  t.equal(code, 0, stderr)
  t.match(stdout, /^Added 5 clubs, /)
  t.match(stderr, /^Creating the embedded PostgreSQL in .*\nApplied migrations: \d+\n$/)
  t.strictSame(await postgresOf(DATA_DIR), [])
})

// Random hostile clients, alongside an honest client of another network.
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

import { hashPassword } from '#lib/auth/passwords.js'
import { createSecretToken, hashSecretToken } from '#lib/auth/secret-tokens.js'
import { type Fault, lazy, type Setting, startPrimary } from './database.ts'
import { createFixture, type Fixture, PASSWORD, type Person, signToken } from './fixture.ts'
import { type Clients, recipeOf, startHostile } from './hostile-clients.ts'
import { openClient, type Outcome } from './http.ts'
import { createGroup, fill, HONEST, memoryOf, NO_GROUP, visit, WAIT } from './memory.ts'
import { type Row, rowOf } from './report.ts'
import { startService } from './service.ts'
import { openStreams } from './streams.ts'
import { allowance, percentile } from '../statistics.ts'

/** Seconds of a recipe, and of the honest client alone before and after it. */
const TIMES = { long: { recipe: 4, alone: 1 }, short: { recipe: 1.5, alone: 0.2 } }

/**
 * The limit for the median of the honest client, in milliseconds. The hostile clients use the same cores, so `least` is
 * what a visitor may notice.
 */
const SLOWER = { times: 3, least: 100 }

export function hostileFaults ({ scope, directory, short, seed }: Setting): Fault[] {
  const seconds = short ? TIMES.short : TIMES.long
  const server = lazy(async () => {
    const { databaseUrl } = await startPrimary(scope, directory)
    const fixture = await createFixture(databaseUrl)
    const author = await fill(fixture)
    const [password, other] = await Promise.all([PASSWORD, randomUUID()].map(hashPassword))
    // Nobody can erase the account, because all recipes need its drafts.
    await fixture.look(sql => sql`UPDATE users SET password = ${other!} WHERE email = 'author@example.org'`)
    return { fixture, DATABASE_URL: databaseUrl, author, password: password! }
  })

  const fault = (megabytes: number): Fault => ({
    name: `hostile: random clients, ${megabytes} MB`,
    async run () {
      const row: Row = rowOf(this.name, [], [])
      const own = scope.inner()
      const group = await createGroup(own, megabytes)
      if (!group) return { ...row, missing: NO_GROUP }
      let target = await start(group)
      const deadline = performance.now() + (short ? 15 : 300) * 1000
      let n = seed
      for (; performance.now() < deadline; n++) {
        const recipe = recipeOf(n)
        const problems = await attempt(recipe, target, row)
        if (problems.length === 0) continue
        await target.own.end()
        const least = short ? recipe : await minimize(recipe, group)
        row.problems.push(...problems.map(problem => `--seed ${n}: ${problem}`))
        row.problems.push(...least.map(clients => JSON.stringify(clients)))
        target = await start(group)
      }
      await target.own.end()
      await own.end()
      row.note = `recipes ${seed} to ${n - 1}`
      return row
    },
  })

  /** Returns the recipe without clients that its finding does not need. */
  async function minimize (recipe: Clients[], group: string): Promise<Clients[]> {
    for (const one of recipe) {
      const rest = recipe.filter(other => other !== one)
      if (rest.length === 0) break
      const target = await start(group)
      const problems = await attempt(rest, target)
      await target.own.end()
      if (problems.length > 0) return minimize(rest, group)
    }
    return recipe
  }

  /** Starts a service in a control group. */
  async function start (group: string) {
    const { fixture, DATABASE_URL, author, password } = await server()
    const own = scope.inner()
    const service = await startService(own, directory, { DATABASE_URL, PUBLIC_URL: 'https://api.example.org' }, group)
    const { send, end } = openClient(service.url, 1, 2 * WAIT, HONEST)
    own.teardown(end)
    const addVictims = async () => {
      const { known, tokens, remove } = await addRows(fixture, author, password)
      const port = Number(new URL(service.url).port)
      return { hostile: { port, known, tokens: { ...tokens, none: '', forged: forge() } }, remove }
    }
    await visit(send, fixture, seconds.alone)
    return { own, service, addVictims, visit: (seconds: number) => visit(send, fixture, seconds) }
  }

  /** Runs a recipe. Returns the broken promises. */
  async function attempt (recipe: Clients[], { own, service, addVictims, visit }: Target, row?: Row) {
    const { hostile, remove } = await addVictims()
    const alone = await visit(seconds.alone)
    if (alone.some(isFailed)) {
      await remove()
      return [`requests failed before it: ${service.child.signalCode}`]
    }
    const streams = await openStreams(service.url, 5, HONEST)
    own.teardown(() => streams.close())
    const worker = startHostile(recipe, hostile)
    own.teardown(() => worker.terminate())
    await once(worker, 'message')
    const beside = await visit(seconds.recipe)
    const memory = memoryOf(service)
    const problems = await streams.check(WAIT)
    await worker.terminate()
    streams.close()
    await sleep(500)
    const after = await visit(seconds.alone)
    await remove()

    const { exitCode, signalCode } = service.child
    const end = signalCode ?? exitCode
    if (end !== null) problems.push(`the service has ended: ${end}`)
    const failed = beside.filter(isFailed)
    if (failed.length > beside.length / 10) {
      const statuses = new Set(failed.map(({ status, error }) => error ?? status))
      problems.push(`${failed.length} of ${beside.length} failed: ${[...statuses]}`)
    }
    const [usual, median] = [alone, beside].map(list => percentile(list.map(({ took }) => took), 50))
    // Other work on the machine delays it.
    if (!short && !(median! <= allowance(usual!, SLOWER))) {
      problems.push(`the median was ${Math.round(median!)} ms, and ${Math.round(usual!)} ms alone; ${memory} MB`)
    }
    if (after.some(isFailed)) problems.push('requests failed afterwards')
    if (row) {
      row.sent += beside.length
      row.failed += failed.length
      row.answered = row.sent - row.failed
      row.slowest = Math.max(row.slowest, percentile(beside.map(({ took }) => took), 100) / 1000)
    }
    return problems
  }
  type Target = Awaited<ReturnType<typeof start>>

  return [fault(512), fault(256)]
}

const isFailed = ({ status }: Outcome) => status < 200 || status > 299

/**
 * Inserts rows for the hostile clients of a recipe, which may change and delete them. `remove` deletes what is left of
 * them, and everything that was inserted since, so that a recipe finds the same database whenever it runs.
 */
async function addRows ({ look }: Fixture, author: Person, password: string) {
  const calendar = createSecretToken()
  const names = ['student', 'head', 'admin', 'victim'] as const
  const { first, people, known } = await look(async sql => {
    const insert = async (table: string, row: object) => {
      const [{ id }] = await sql<[{ id: string }]>`INSERT INTO ${sql(table)} ${sql(row)} RETURNING id`
      return id
    }
    const [{ first }] = await sql<[{ first: string }]>`SELECT new_id() AS first`
    const clubs = await insert('clubs', { name: `Hostile ${first}`, description: 'They try everything' })
    const [student, head, admin, users] = await Promise.all(names.map(name => insert('users', {
      email: emailOf(name),
      password,
      first_name: 'Mallory',
      last_name: name,
      ...name === 'admin' && { role: 'ADMIN' },
      ...name === 'head' && { role: 'CLUB_HEAD', club_id: clubs },
    })))
    await sql`UPDATE clubs SET club_head_id = ${head!} WHERE id = ${clubs}`
    const image = 'https://example.org/picture.png'
    const date = new Date(Date.now() + 86_400_000)
    const events = await insert('events', { title: 'Event', description: 'long '.repeat(50_000), date, club_id: clubs })
    await sql`INSERT INTO event_details ${sql({ event_id: events, capacity: 1 })}`
    await sql`INSERT INTO club_members ${sql({ user_id: users!, club_id: clubs, state: 'requested' })}`
    await sql`INSERT INTO calendar_tokens ${sql({ user_id: student!, token_hash: hashSecretToken(calendar) })}`
    // Many are in line for a seat.
    const [{ registrations }] = await sql<[{ registrations: string }]>`
      INSERT INTO event_registrations (user_id, event_id)
      SELECT id, ${events} FROM users WHERE email LIKE 'student-%' OR id = ${student!}
      RETURNING id AS registrations
    `
    const [{ by }] = await sql<[{ by: string }]>`SELECT author_id AS by FROM blogs WHERE id = ${author.id}`
    const content = randomBytes(500_000).toString('hex')
    const known = {
      ...{ clubs, users: users!, events, registrations, token: calendar, email: emailOf('student') },
      blogs: await insert('blogs', { title: 'Draft', content, author_id: by }),
      mentors: await insert('mentors', { name: 'M', expertise: 'Go', image_url: image, club_id: clubs }),
      testimonials: await insert('testimonials', { name: 'T', content: 'Words', batch_year: 2021 }),
      pictures: await insert('pictures', {
        user_id: student!, large: randomBytes(250_000), small: randomBytes(25_000), width: 2000, height: 1500,
      }),
    }
    return { first, people: { student: student!, head: head!, admin: admin! }, known }
  })
  const tokens = {
    student: await signToken(people.student, 'STUDENT'),
    head: await signToken(people.head, 'CLUB_HEAD'),
    admin: await signToken(people.admin, 'ADMIN'),
    author: author.token,
  }
  const remove = () => look(async sql => {
    // The id of a row begins with the time of its insertion.
    await sql`
      DELETE FROM event_registrations USING events
      WHERE events.id = event_id AND (events.id > ${first} OR user_id > ${first})
    `
    await sql`DELETE FROM revoked_tokens`
    await sql`UPDATE users SET club_id = NULL WHERE club_id > ${first}`
    for (const table of ['events', 'mentors', 'blogs', 'testimonials', 'pictures', 'clubs', 'users']) {
      await sql`DELETE FROM ${sql(table)} WHERE id > ${first}`
    }
  })
  return { known, tokens, remove }
}

const emailOf = (name: string) => `hostile-${name}@example.org`

/** A token of 15 KB in the form of the service. */
const forge = () => `eyJhbGciOiJIUzI1NiJ9.${Buffer.from(JSON.stringify({ x: 'x'.repeat(10_000) })).toString('base64url')
  }.${'A'.repeat(43)}`

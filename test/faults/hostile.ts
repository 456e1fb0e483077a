// Random hostile clients, alongside an honest client of another network.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Fault, lazy, type Setting, startPrimary } from './database.ts'
import { createFixture, type Fixture, type Person, signToken } from './fixture.ts'
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
    return { fixture, DATABASE_URL: databaseUrl, author: await fill(fixture), student: await addStudent(fixture) }
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
    const { fixture, DATABASE_URL, author, student } = await server()
    const own = scope.inner()
    const service = await startService(own, directory, { DATABASE_URL, PUBLIC_URL: 'https://api.example.org' }, group)
    const { send, end } = openClient(service.url, 1, 2 * WAIT, HONEST)
    own.teardown(end)
    const tokens = { none: '', student: student.token, author: author.token, forged: forge() }
    const hostile = { port: Number(new URL(service.url).port), id: author.id, tokens }
    await visit(send, fixture, seconds.alone)
    return { own, service, hostile, visit: (seconds: number) => visit(send, fixture, seconds) }
  }

  /** Runs a recipe. Returns the broken promises. */
  async function attempt (recipe: Clients[], { own, service, hostile, visit }: Target, row?: Row) {
    const alone = await visit(seconds.alone)
    if (alone.some(isFailed)) return [`requests failed before it: ${service.child.signalCode}`]
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

/** A student of the hostile clients, which may erase the account. */
async function addStudent ({ look }: Fixture): Promise<Person> {
  const [user] = await look(sql => sql<[{ id: string }]>`
    INSERT INTO users (email, password, first_name, last_name)
    VALUES ('hostile@example.org', '!', 'Mallory', 'Student') RETURNING id
  `)
  return { id: user.id, token: await signToken(user.id, 'STUDENT') }
}

/** A token of 15 KB in the form of the service. */
const forge = () => `eyJhbGciOiJIUzI1NiJ9.${Buffer.from(JSON.stringify({ x: 'x'.repeat(10_000) })).toString('base64url')
  }.${'A'.repeat(43)}`

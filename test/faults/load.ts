import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Fixture, PASSWORD, type Person } from './fixture.ts'
import { openClient, type Outcome, type Request } from './http.ts'
import { Ledger } from './ledger.ts'
import { allowance, percentile } from '../statistics.ts'

/** A request, its successful status, and its declared failure. */
interface Operation extends Request {
  status: number
  /** The text of its 500. */
  failure: string
  /** Whether it hashes a password, for which requests wait in line. */
  hashes?: boolean
}

export interface LoadOptions {
  /** How long the service may let an operation wait, in milliseconds. Responses may take this and some more. */
  wait: number
  readers?: number
  writers?: number
  /** Whether writers only register and sign in. */
  onlyAccounts?: boolean
  /** The pause after each response, in milliseconds. */
  pause?: number
  /** Allows outcomes besides success and the declared failure. */
  allows?: (outcome: Outcome) => boolean
  /** Whether operations may be refused. */
  isOverload?: boolean
  /** Returns the problem of an allowed outcome, if there is one. */
  inspect?: (outcome: Outcome) => string | undefined
}

const LISTS: [path: string, failure: string][] = [
  ['/events', 'Error fetching events'],
  ['/events?sort=asc&limit=50', 'Error fetching events'],
  ['/mentors', 'Failures of this list are empty'],
  ['/clubs', 'Error fetching clubs'],
  ['/blogs', 'Failed to fetch blogs'],
  ['/testimonials', 'Failed to fetch testimonials'],
]

/** How long a response may take beyond the wait: a multiple of the usual p99. */
export const RESPONSE_TIME = { times: 10, least: 1000 }

/** How long a load runs before it is measured, in milliseconds: connections are opened, and code is compiled. */
const WARM_UP = 500

/** How many problems of a load are recorded. */
const ENOUGH = 20

/** Readers and writers that run until they are stopped, and check every outcome. */
export class Load {
  readonly ledger = new Ledger()
  readonly problems: string[] = []
  /**
   * The durations of successful requests, in milliseconds. With `onlyAccounts`, only requests that hash
   * passwords count, otherwise only the other requests.
   */
  readonly latencies: number[] = []
  /** The p99 without a fault, in milliseconds. */
  usual = NaN
  sent = 0
  answered = 0
  failed = 0
  /** Allowed outcomes besides success and the declared failure. */
  refused = 0
  slowest = 0
  /** When the latest failed request was sent, and when it failed. */
  lastFailure = { start: 0, end: 0 }
  readonly #fixture: Fixture
  readonly #options: Required<LoadOptions>
  readonly #client: ReturnType<typeof openClient>
  /** The longest duration allowed, in milliseconds. Infinite until the load has been measured without a fault. */
  #bound = Infinity
  #running: Promise<void>[] = []
  #stopped = false

  constructor (fixture: Fixture, url: string, options: LoadOptions) {
    this.#fixture = fixture
    this.#options = {
      readers: 6,
      writers: 6,
      onlyAccounts: false,
      pause: 5,
      allows: () => false,
      isOverload: false,
      inspect: () => undefined,
      ...options,
    }
    const { readers, writers, wait } = this.#options
    this.#client = openClient(url, readers + writers, 4 * (wait + RESPONSE_TIME.least))
  }

  /** Starts the load, and measures it without a fault for so many milliseconds, as the baseline for the rest. */
  async start (milliseconds = 1000) {
    const { readers, writers } = this.#options
    this.#running = [
      ...Array.from({ length: readers }, (_, n) => this.#repeat(turn => this.#read(n + turn))),
      ...Array.from({ length: writers }, (_, n) => this.#repeat(turn => this.#write(n, turn))),
    ]
    await sleep(WARM_UP)
    await this.measure(() => sleep(milliseconds))
  }

  /** Measures the load during `work`, which is not a fault, as the new baseline. */
  async measure (work: () => Promise<void>) {
    this.latencies.length = 0
    await work()
    this.usual = percentile(this.latencies, 99)
    this.latencies.length = 0
    this.slowest = 0
    this.#bound = this.#options.wait + allowance(this.usual, RESPONSE_TIME)
  }

  /** Waits for pending requests. */
  async stop () {
    this.#stopped = true
    await Promise.all(this.#running)
    this.#client.end()
  }

  async #repeat (step: (turn: number) => Promise<void>) {
    for (let turn = 0; !this.#stopped; turn++) {
      await step(turn)
      await sleep(this.#options.pause)
    }
  }

  async #read (turn: number) {
    const [path, failure] = LISTS[turn % LISTS.length]!
    const body = await this.#ask({ method: 'GET', path, status: 200, failure })
    // This list hides its failure, and that it was refused, behind an empty list.
    if (body?.mentors?.length === 0) {
      this.answered--
      if (this.#options.isOverload) this.refused++
      else this.failed++
      this.latencies.pop()
    }
  }

  /** Creates accounts rarely, because hashing passwords takes most of the time. */
  async #write (writer: number, turn: number) {
    const steps = [this.#register, this.#like, this.#submit, this.#update, this.#register, this.#like, this.#update]
    if (this.#options.onlyAccounts) await this.#signUpAndIn()
    else if (turn % 15 === 14) await this.#signUp()
    else await steps[(writer + turn) % steps.length]!.call(this, writer)
  }

  async #register () {
    const { value } = this.#fixture.registrations.next()
    if (!value) return this.#note('all pairs are registered: the load ran too long')
    const [{ id: user, token }, event] = value
    const path = `/events/${event}/register`
    const body = await this.#ask({
      method: 'POST', path, token, status: 201, failure: 'Error registering for event',
    })
    if (!body) return
    const { registration } = body
    this.ledger.registrations.set(registration.id, { user, event })
    await this.#seeAtOnce(token, '/events/registered', 'Error fetching registered events', registration.id)
  }

  async #like () {
    const { value } = this.#fixture.likes.next()
    if (!value) return this.#note('all pairs are likes: the load ran too long')
    const [{ id: user, token }, mentor] = value
    const body = await this.#ask({
      method: 'POST', path: `/mentors/${mentor}/like`, token, status: 200, failure: 'Error toggling mentor like',
    })
    if (!body) return
    if (!body.liked) return this.#note(`the first like of ${user} for ${mentor} is ${JSON.stringify(body)}`)
    this.ledger.likes.push({ user, mentor })
    await this.#seeAtOnce(token, '/mentors/liked', 'Error fetching liked mentors', mentor)
  }

  async #submit () {
    const { id: author, token } = this.#someone()
    const content = { title: `Blog ${randomUUID()}`, content: `What is said in it, ${randomUUID()}` }
    const body = await this.#ask({
      method: 'POST', path: '/blogs/submit', token, body: content, status: 201, failure: 'Failed to submit blog',
    })
    if (!body) return
    this.ledger.blogs.set(body.blog.id, { author, ...content })
    await this.#seeAtOnce(token, '/blogs/me', 'Failed to fetch your blogs', body.blog.id)
  }

  /** Writers update different blogs, so that each knows the latest title. */
  async #update (writer: number) {
    const { blogs, admin: { token } } = this.#fixture
    const own = blogs.filter((_, n) => n % this.#options.writers === writer)
    const blog = own[Math.floor(Math.random() * own.length)]!
    const title = `Title ${randomUUID()}`
    const acknowledge = this.ledger.updateTitle(blog, title)
    const body = await this.#ask({
      method: 'PUT', path: `/blogs/${blog}`, token, body: { title }, status: 200, failure: 'Failed to update blog',
    })
    if (!body) return
    acknowledge()
    await this.#seeAtOnce(undefined, `/blogs/${blog}`, 'Failed to fetch blog', title)
  }

  async #signUp () {
    const account = { email: `${randomUUID()}@example.org`, firstName: 'Mary', lastName: 'Jackson' }
    const body = await this.#ask({
      method: 'POST',
      path: '/auth/register',
      body: { ...account, password: PASSWORD },
      status: 201,
      failure: 'Registration failed',
      hashes: true,
    })
    if (!body) return
    this.ledger.accounts.set(body.user.id, account)
    await this.#seeAtOnce(body.token, '/auth/me', 'Internal server error', account.email)
    return account
  }

  async #signUpAndIn () {
    const account = await this.#signUp()
    if (!account) return
    const body = await this.#ask({
      method: 'POST',
      path: '/auth/login',
      body: { email: account.email, password: PASSWORD },
      status: 200,
      failure: 'Login failed',
      hashes: true,
    })
    if (body) await this.#seeAtOnce(body.token, '/auth/me', 'Internal server error', account.email)
  }

  #someone (): Person {
    const { students } = this.#fixture
    return students[Math.floor(Math.random() * students.length)]!
  }

  /** Asserts that a read after an acknowledged write shows it. */
  async #seeAtOnce (token: string | undefined, path: string, failure: string, text: string) {
    const body = await this.#ask({ method: 'GET', path, token, status: 200, failure })
    if (body && !JSON.stringify(body).includes(text)) this.#note(`GET ${path} does not show ${text}, written before`)
  }

  /** The body of a successful response; `undefined` otherwise. */
  async #ask ({ status, failure, hashes = false, ...request }: Operation): Promise<any> {
    this.sent++
    const outcome = await this.#client.send(request)
    const { took, start } = outcome
    const what = `${request.method} ${request.path.replace(/[\da-f]{8}-[-\da-f]{27}/, ':id')}`
    if (outcome.status === status) {
      this.answered++
      if (hashes === this.#options.onlyAccounts) this.latencies.push(took)
    } else if (outcome.status === 500 && outcome.body.message === failure) {
      this.failed++
      if (start > this.lastFailure.start) this.lastFailure = { start, end: start + took }
    } else if (this.#options.allows(outcome)) {
      this.refused++
    } else if (took < this.#bound) {
      this.#note(`${what}: ${outcome.error ?? `${outcome.status} ${JSON.stringify(outcome.body)}`} ` +
        `after ${Math.round(took)} ms${outcome.error && outcome.reused ? ' on a kept connection' : ''}`)
    }
    const wrong = this.#options.inspect(outcome)
    if (wrong) this.#note(`${what}: ${wrong}`)
    this.slowest = Math.max(this.slowest, took)
    if (took >= this.#bound) {
      this.#note(`${what}: ${outcome.error ?? outcome.status} after ${Math.round(took)} ms`)
    }
    return outcome.status === status ? outcome.body : undefined
  }

  #note (problem: string) {
    if (this.problems.length < ENOUGH) this.problems.push(problem)
  }
}

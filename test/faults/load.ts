import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { openClient, type Outcome, type Request } from './http.ts'
import { Ledger } from './ledger.ts'
import { allowance, percentile } from '../statistics.ts'
import { PASSWORD, type Person, type World } from './world.ts'

/** What an operation may answer, and what it does when it fails. */
interface Operation extends Request {
  status: number
  /** The text of its declared failure, a 500. */
  failure: string
  /** Whether a password is hashed: that waits in line with all others. */
  hashes?: boolean
}

export interface LoadOptions {
  /** How long the service may let an operation wait, in milliseconds: an answer may take that, and a bit more. */
  wait: number
  readers?: number
  writers?: number
  /** Whether writers do nothing but register and sign in. */
  onlyAccounts?: boolean
  /** How long each of them waits after an answer, in milliseconds. */
  pause?: number
  /** What may come of a request besides its answer and its declared failure. */
  allows?: (outcome: Outcome) => boolean
  /** What is wrong with an outcome that is right so far. */
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

/** How long an answer may take beside what the service may let it wait, by what 99 % of them take without a fault. */
export const ANSWER = { times: 10, least: 1000 }

/** How long a load runs, in milliseconds, before it is measured: until connections are open, and code is compiled. */
const WARM_UP = 500

/** How many problems of a load are kept. */
const ENOUGH = 20

/** Readers and writers who go on until they are stopped, whatever they are answered; every answer is judged. */
export class Load {
  readonly ledger = new Ledger()
  readonly problems: string[] = []
  /**
   * How long requests took that were answered as they should be, in milliseconds: without those that hash passwords,
   * unless that is all that there is.
   */
  readonly latencies: number[] = []
  /** How long 99 % of the requests took without a fault, in milliseconds. */
  usual = NaN
  sent = 0
  answered = 0
  failed = 0
  /** Allowed, but no answer of the service. */
  refused = 0
  slowest = 0
  /** When the last one of the failed was sent, and when it was answered. */
  lastFailure = { start: 0, end: 0 }
  readonly #world: World
  readonly #options: Required<LoadOptions>
  readonly #client: ReturnType<typeof openClient>
  /** Within how many milliseconds each answer must be there. What is measured without a fault is not judged. */
  #bound = Infinity
  #running: Promise<void>[] = []
  #stopped = false

  constructor (world: World, url: string, options: LoadOptions) {
    this.#world = world
    this.#options = {
      readers: 6, writers: 6, onlyAccounts: false, pause: 5, allows: () => false, inspect: () => undefined, ...options,
    }
    const { readers, writers, wait } = this.#options
    this.#client = openClient(url, readers + writers, 4 * (wait + ANSWER.least))
  }

  /** Starts, and measures for so many milliseconds what this takes without a fault: the rest is judged by it. */
  async start (milliseconds = 1000) {
    const { readers, writers } = this.#options
    this.#running = [
      ...Array.from({ length: readers }, (_, n) => this.#repeat(turn => this.#read(n + turn))),
      ...Array.from({ length: writers }, (_, n) => this.#repeat(turn => this.#write(n, turn))),
    ]
    await sleep(WARM_UP)
    await this.measure(() => sleep(milliseconds))
  }

  /** Measures what the load takes beside something that is no fault: from then on it is judged by that. */
  async measure (work: () => Promise<void>) {
    this.latencies.length = 0
    await work()
    this.usual = percentile(this.latencies, 99)
    this.latencies.length = 0
    this.slowest = 0
    this.#bound = this.#options.wait + allowance(this.usual, ANSWER)
  }

  /** Waits for what is being answered. */
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
    // This list declares to be empty when it fails.
    if (body?.mentors?.length === 0) {
      this.answered--
      this.failed++
      this.latencies.pop()
    }
  }

  /** Hashing passwords takes most of the time, so accounts are made now and then. */
  async #write (writer: number, turn: number) {
    const steps = [this.#register, this.#like, this.#submit, this.#update, this.#register, this.#like, this.#update]
    if (this.#options.onlyAccounts) await this.#signUpAndIn()
    else if (turn % 15 === 14) await this.#signUp()
    else await steps[(writer + turn) % steps.length]!.call(this, writer)
  }

  async #register () {
    const { value } = this.#world.registrations.next()
    if (!value) return this.#note('everybody is registered for everything: this went on for too long')
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
    const { value } = this.#world.likes.next()
    if (!value) return this.#note('everybody likes everybody: this went on for too long')
    const [{ id: user, token }, mentor] = value
    const body = await this.#ask({
      method: 'POST', path: `/mentors/${mentor}/like`, token, status: 200, failure: 'Error toggling mentor like',
    })
    if (!body) return
    if (!body.liked) return this.#note(`${user} likes ${mentor} for the first time: ${JSON.stringify(body)}`)
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

  /** Each writer has blogs of its own, so that it knows what was last. */
  async #update (writer: number) {
    const { blogs, admin: { token } } = this.#world
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
    const { students } = this.#world
    return students[Math.floor(Math.random() * students.length)]!
  }

  /** Whoever was acknowledged a write sees it in what they ask for next. */
  async #seeAtOnce (token: string | undefined, path: string, failure: string, text: string) {
    const body = await this.#ask({ method: 'GET', path, token, status: 200, failure })
    if (body && !JSON.stringify(body).includes(text)) this.#note(`GET ${path} does not show ${text}, written before`)
  }

  /** The body of an answer that is as it should be; `undefined` when the operation failed as it declares. */
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

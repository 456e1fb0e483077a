import { deepStrictEqual } from 'node:assert'
import { setImmediate } from 'node:timers/promises'

import fc from 'fast-check'

import { FairQueue, type Task } from '#lib/fair-queue.js'
import t, { type Test } from '../suite.ts'

const now = performance.now.bind(performance)

/** Stops the clock. Returns a function that moves it. `t.intercept` would record the stack of each call. */
function stopClock (t: Test) {
  let time = 0
  performance.now = () => time
  t.teardown(() => { performance.now = now })
  return (milliseconds: number) => { time += milliseconds }
}

/** A queue with a concurrency of 1 and a maximum length of 6. Its clock stands still until `later`. */
function start (t: Test) {
  const later = stopClock(t)
  const createError = () => new Error('refused')
  const queue = new FairQueue({ concurrency: 1, maxLength: 6, maxWaitMs: 1000, createError })
  const begun: string[] = []
  const outcomes: Record<string, string> = {}
  const ends: (() => void)[] = []
  const gone = new Set<string>()

  /** Adds a task that runs until `finish`. */
  function add (key: string, name: string) {
    const work = () => new Promise<void>(resolve => {
      begun.push(name)
      ends.push(resolve)
    })
    return queue.run({ network: key }, work, () => !gone.has(name)).then(
      () => { outcomes[name] = 'done' }, error => { outcomes[name] = (error as Error).message })
  }

  /** Finishes tasks until the queue is empty. */
  async function runAll () {
    while (ends.length > 0) {
      ends.shift()!()
      await setImmediate()
    }
  }

  return { queue, begun, outcomes, gone, add, runAll, later }
}

t.test('Keys take turns, however many tasks of one came first', async t => {
  const { queue, begun, add, runAll } = start(t)
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2']) add(name[0]!, name)
  await setImmediate()
  t.strictSame([queue.running, queue.waiting], [1, 6])
  await runAll()
  t.strictSame(begun, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
  t.strictSame([queue.running, queue.waiting], [0, 0])
})

t.test('A key that returns goes to the end of the queue', async t => {
  const { begun, add, runAll } = start(t)
  for (const name of ['a1', 'b1', 'c1', 'a2']) add(name[0]!, name)
  await setImmediate()
  const running = runAll()
  add('b', 'b2')
  await running
  t.strictSame(begun, ['a1', 'b1', 'c1', 'a2', 'b2'])
})

t.test('A single key can use the whole queue', async t => {
  const { queue, outcomes, add, runAll } = start(t)
  const all = Array.from({ length: 9 }, (_, n) => add('a', `a${n}`))
  t.equal(queue.waiting, 6)
  await t.rejects(queue.assertNotFull({ network: 'a' }), { message: 'refused' })
  await runAll()
  await Promise.all(all)
  t.strictSame(Object.values(outcomes).filter(outcome => outcome === 'done').length, 7)
  t.match(outcomes, { a6: 'done', a7: 'refused', a8: 'refused' })
  t.resolves(queue.assertNotFull({ network: 'a' }))
})

t.test('When the queue is full, the newest task of the key with the most gives way to other keys', async t => {
  const { queue, begun, outcomes, add, runAll } = start(t)
  const all = Array.from({ length: 7 }, (_, n) => add('a', `a${n}`))
  await queue.assertNotFull({ network: 'b' })
  all.push(...['b1', 'c1', 'b2', 'c2'].map(name => add(name[0]!, name)))
  await setImmediate()
  t.strictSame(outcomes, { a6: 'refused', a5: 'refused', a4: 'refused', a3: 'refused' })
  t.equal(queue.waiting, 6)
  for (const key of ['a', 'b', 'c']) await t.rejects(queue.assertNotFull({ network: key }), `${key} has its share`)
  all.push(add('d', 'd1'))
  await setImmediate()
  t.match(outcomes, { a2: 'refused' }, 'among equals, the one whose turn is next')
  await t.rejects(queue.assertNotFull({ network: 'd' }), 'no key has two more than it')
  await runAll()
  await Promise.all(all)
  t.strictSame(begun, ['a0', 'a1', 'b1', 'c1', 'd1', 'b2', 'c2'])
})

t.test('A task that waited too long is rejected when its turn comes, and the next one starts', async t => {
  const { begun, outcomes, add, runAll, later } = start(t)
  const old = ['a1', 'a2', 'b1'].map(name => add(name[0]!, name))
  later(1001)
  const fresh = add('c', 'c1')
  await runAll()
  await Promise.all([...old, fresh])
  t.strictSame(begun, ['a1', 'c1'])
  t.strictSame(outcomes, { a1: 'done', a2: 'refused', b1: 'refused', c1: 'done' })
})

t.test('A task that is no longer wanted never runs, and frees its place', async t => {
  const { queue, begun, outcomes, gone, add, runAll } = start(t)
  const all = ['a1', 'a2', 'a3', 'b1', 'c1'].map(name => add(name[0]!, name))
  gone.add('a2').add('b1')
  queue.dropUnwanted()
  t.equal(queue.waiting, 2)
  gone.add('c1')
  await runAll()
  await Promise.all(all)
  t.strictSame(begun, ['a1', 'a3'])
  t.strictSame(outcomes, { a1: 'done', a2: 'refused', a3: 'done', b1: 'refused', c1: 'refused' })
})

t.test('A task that fails frees its place', async t => {
  const { queue } = start(t)
  const work = async () => { throw new Error('of the work') }
  await t.rejects(queue.run({ network: 'a' }, work), { message: 'of the work' })
  t.strictSame([queue.running, queue.waiting], [0, 0])
})

t.test('Rejections are delayed', async t => {
  const { queue, add, runAll } = start(t)
  const all = Array.from({ length: 7 }, () => add('a', 'a'))
  // A timer counts from the beginning of the turn.
  await setImmediate()
  const begin = now()
  await t.rejects(queue.assertNotFull({ network: 'a' }), { message: 'refused' })
  const time = now() - begin
  t.ok(time >= 90, `${Math.round(time)} ms`)
  await runAll()
  await Promise.all(all)
})

t.test('A key keeps all places alone, and half of them while others wait', async t => {
  const queue = new FairQueue({ concurrency: 4, maxLength: 9, createError: () => new Error('refused') })
  const ends: (() => void)[] = []
  const begun: string[] = []
  const add = (network: string) => queue.run({ network }, () => new Promise<void>(resolve => {
    begun.push(network)
    ends.push(resolve)
  }))
  const finish = async () => {
    ends.shift()!()
    await setImmediate()
  }
  for (const network of 'aaaaaab') add(network)
  t.equal(begun.join(''), 'aaaa')
  await finish()
  for (const network of 'bb') add(network)
  await finish()
  t.equal(begun.join(''), 'aaaabb', 'a has its half')
  await finish()
  t.equal(begun.join(''), 'aaaabba', 'both have their half')
  while (ends.length > 0) await finish()
  t.strictSame([queue.running, queue.waiting], [0, 0])
})

t.test('A key leaves half of the places free for a second after the last task of another', async t => {
  const later = stopClock(t)
  const createError = () => new Error('refused')
  const queue = new FairQueue({ concurrency: 4, maxLength: 9, reservedMs: 1000, createError })
  const ends: Record<string, (() => void)[]> = { a: [], b: [] }
  const begun: string[] = []
  const add = async (network: string) => {
    queue.run({ network }, () => new Promise<void>(resolve => {
      begun.push(network)
      ends[network]!.push(resolve)
    }))
    await setImmediate()
  }
  const finish = async (network: string) => {
    ends[network]!.shift()!()
    await setImmediate()
  }
  for (const network of 'baaaa') await add(network)
  t.strictSame([begun.join(''), queue.waiting], ['baa', 2])
  await finish('b')
  await add('b')
  t.equal(begun.join(''), 'baab', 'b finds a place free, one request after the other')
  await finish('b')
  later(999)
  await finish('a')
  t.equal(begun.join(''), 'baaba')
  later(1)
  await add('a')
  t.equal(begun.join(''), 'baabaaa', 'what waited longer begins before it')
  t.strictSame([queue.running, queue.waiting], [4, 0])
  for (const network of 'aaaa') await finish(network)

  for (const network of 'baaa') await add(network)
  await finish('b')
  later(1000)
  t.equal(queue.waiting, 1)
  queue.beginNext()
  t.equal(queue.waiting, 0, 'the place is free after the second, without further tasks')
  for (const network of 'aaa') await finish(network)
})

t.test('Clients that join waiting work share one entry, which waits where its turn comes soonest', async t => {
  const { queue, begun, outcomes, add, runAll, gone } = start(t)
  const read = { run: async () => { begun.push('list') }, isWanted: () => !gone.has('list') }
  for (const name of ['a1', 'a2', 'a3', 'b1', 'c1']) add(name[0]!, name)
  const reading = queue.runShared({ network: 'a' }, read)
  queue.join({ network: 'b' }, read)
  t.equal(queue.waiting, 5, 'one entry')
  queue.join({ network: 'd' }, read)
  queue.join({ network: 'c' }, read)
  queue.join({ network: 'a' }, { ...read })
  await runAll()
  await reading
  t.strictSame(begun, ['a1', 'a2', 'b1', 'c1', 'list', 'a3'])

  add('a', 'a4')
  const alone = queue.runShared({ network: 'e' }, read)
  queue.join({ network: 'f' }, read)
  gone.add('list')
  queue.dropUnwanted()
  await t.rejects(alone, { message: 'refused' })
  await runAll()
  t.equal(outcomes.a4, 'done')
})

/** The queue as a list of what waits: slow, and too simple to be wrong. */
class Model {
  readonly running: { name: number, network: string }[] = []
  readonly begun: number[] = []
  readonly refused: number[] = []
  waiting: { name: number, network: string }[] = []
  /** When each network had its last turn, or began to wait. */
  readonly #turns = new Map<string, number>()
  #time = 0
  /** When each network came last. */
  readonly #seen = new Map<string, number>()
  readonly #concurrency: number
  readonly #maxLength: number
  readonly #reservedMs: number

  constructor (concurrency: number, maxLength: number, reservedMs: number) {
    this.#concurrency = concurrency
    this.#maxLength = maxLength
    this.#reservedMs = reservedMs
  }

  add (name: number, network: string) {
    this.#seen.set(network, performance.now())
    if (this.#of(network).length === 0 && this.#mayBegin(network)) return this.#begin({ name, network })
    if (this.waiting.length === this.#maxLength) {
      const [longest] = this.#networks().sort((one, other) => this.#of(other).length - this.#of(one).length)
      if (this.#of(longest!).length <= this.#of(network).length + 1) return this.refused.push(name)
      this.drop(this.#of(longest!).at(-1)!.name)
    }
    this.#append(name, network)
    this.#beginAll()
  }

  join (name: number, network: string) {
    const work = this.waiting.find(waiting => waiting.name === name)
    if (!work) return
    const ahead = this.#of(work.network).indexOf(work)
    if (this.#isFull(network) || (!this.#isFull(work.network) && this.#of(network).length >= ahead)) return
    this.waiting.splice(this.waiting.indexOf(work), 1)
    this.#append(name, network)
    this.#beginAll()
  }

  finish (name: number) {
    this.running.splice(this.running.findIndex(running => running.name === name), 1)
    this.#beginAll()
  }

  drop (name: number) {
    const index = this.waiting.findIndex(waiting => waiting.name === name)
    if (index < 0) return
    this.waiting.splice(index, 1)
    this.refused.push(name)
  }

  #beginAll () {
    const networks = this.#networks().filter(network => this.#mayBegin(network))
    const network = networks.find(network => !this.#isFull(network)) ?? networks[0]
    if (!network) return
    const [next] = this.#of(network)
    this.waiting.splice(this.waiting.indexOf(next!), 1)
    this.#begin(next!)
    this.#turns.set(network, ++this.#time)
    this.#beginAll()
  }

  #mayBegin (network: string) {
    const others = [...this.#seen].filter(([other]) => other !== network).map(([, time]) => time)
    const hasRivals = others.some(time => performance.now() - time < this.#reservedMs)
    return this.running.length < this.#concurrency && !(this.#isFull(network) && hasRivals)
  }

  #begin (work: { name: number, network: string }) {
    this.running.push(work)
    this.begun.push(work.name)
  }

  #append (name: number, network: string) {
    if (this.#of(network).length === 0) this.#turns.set(network, ++this.#time)
    this.waiting.push({ name, network })
  }

  #of (network: string) { return this.waiting.filter(waiting => waiting.network === network) }

  /** The networks that wait, in the order of their turns. */
  #networks () {
    const networks = [...new Set(this.waiting.map(({ network }) => network))]
    return networks.sort((one, other) => this.#turns.get(one)! - this.#turns.get(other)!)
  }

  /** Whether a network has half of the places. */
  #isFull (network: string) {
    return this.running.filter(running => running.network === network).length >= this.#concurrency / 2
  }
}

t.test('Whatever networks do, the queue is as fair as its model', async t => {
  const later = stopClock(t)
  const network = fc.constantFrom('a', 'b', 'c', 'd')
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ does: fc.constant('add' as const), network }) },
    { weight: 3, arbitrary: fc.record({ does: fc.constant('finish' as const), pick: fc.nat() }) },
    fc.record({ does: fc.constant('later' as const), pick: fc.constantFrom(400, 1000) }),
    fc.record({ does: fc.constant('join' as const), pick: fc.nat(), network }),
    fc.record({ does: fc.constant('drop' as const), pick: fc.nat() })
  )
  const checks: (() => Promise<void>)[] = []
  await fc.assert(fc.asyncProperty(
    fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 8 }), fc.constantFrom(0, 1000),
    fc.array(step, { minLength: 20, maxLength: 60 }),
    async (concurrency, maxLength, reservedMs, steps) => {
      const createError = () => new Error('refused')
      const queue = new FairQueue({ concurrency, maxLength, reservedMs, createError })
      const model = new Model(concurrency, maxLength, reservedMs)
      const begun: number[] = []
      const refused: number[] = []
      const tasks: Task[] = []
      const ends: (() => void)[] = []
      const gone = new Set<number>()
      const all: Promise<void>[] = []
      for (const { does, ...rest } of steps) {
        const { network = '', pick = 0 } = rest as { network?: string, pick?: number }
        const name = tasks.length
        if (does === 'add') {
          const run = () => new Promise<void>(resolve => {
            begun.push(name)
            ends[name] = resolve
          })
          const task = { run, isWanted: () => !gone.has(name) }
          tasks.push(task)
          all.push(queue.runShared({ network }, task).catch(() => { refused.push(name) }))
          model.add(name, network)
        } else if (does === 'finish' && model.running.length > 0) {
          const { name } = model.running[pick % model.running.length]!
          ends[name]!()
          model.finish(name)
        } else if (does === 'later') {
          later(pick)
        } else if (does === 'join' && name > 0) {
          queue.join({ network }, tasks[pick % name]!)
          model.join(pick % name, network)
        } else if (does === 'drop' && name > 0) {
          gone.add(pick % name)
          queue.dropUnwanted()
          model.drop(pick % name)
        }
        await setImmediate()
        deepStrictEqual([begun, queue.running, queue.waiting], [
          model.begun, model.running.length, model.waiting.length,
        ])
      }
      while (model.running.length > 0) {
        const { name } = model.running[0]!
        ends[name]!()
        model.finish(name)
        await setImmediate()
      }
      deepStrictEqual(begun, model.begun)
      checks.push(async () => {
        await Promise.all(all)
        t.strictSame(refused.sort(), model.refused.sort(), fc.stringify([concurrency, maxLength, reservedMs, steps]))
      })
    }
  ), { numRuns: 200 })
  // Rejections are delayed.
  for (const check of checks) await check()
})

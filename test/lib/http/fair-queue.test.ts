import { ok, strictEqual } from 'node:assert'
import { setImmediate } from 'node:timers/promises'

import fc from 'fast-check'

import { FairQueue } from '#lib/http/fair-queue.js'
import { clientIn } from '../../clients.ts'
import t, { type Test } from '../../suite.ts'

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
  const queue = new FairQueue({ concurrency: 1, maxLength: 6, createError })
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
    return queue.run(clientIn(key, () => !gone.has(name)), work).then(
      () => { outcomes[name] = 'done' }, error => { outcomes[name] = (error as Error).message })
  }

  /** Finishes tasks until the queue is empty. */
  async function runAll () {
    await setImmediate()
    while (ends.length > 0) {
      ends.shift()!()
      await setImmediate()
    }
  }

  return { queue, begun, outcomes, gone, ends, add, runAll, later }
}

t.test('Networks take turns, however many tasks of one came first', async t => {
  const { queue, begun, add, runAll, later } = start(t)
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2']) add(name[0]!, name)
  await setImmediate()
  later(1)
  t.strictSame([queue.running, queue.waiting], [1, 6])
  await runAll()
  t.strictSame(begun, ['a1', 'b1', 'c1', 'b2', 'a2', 'a3', 'a4'])
  t.strictSame([queue.running, queue.waiting], [0, 0])
})

t.test('The next place goes to the network whose work took least time lately', async t => {
  const { begun, ends, add, runAll, later } = start(t)
  const finish = async (milliseconds: number) => {
    later(milliseconds)
    ends.shift()!()
    await setImmediate()
  }
  for (const name of ['a1', 'a2', 'b1', 'b2', 'b3', 'b4']) add(name[0]!, name)
  await setImmediate()
  await finish(400)
  for (let n = 1; n < 4; n++) await finish(20)
  t.strictSame(begun, ['a1', 'b1', 'b2', 'b3', 'b4'], 'b has used 60 ms, and a 400')
  later(500)
  add('c', 'c1')
  await runAll()
  t.strictSame(begun.slice(5), ['c1', 'a2'], 'what runs counts from its beginning')
  later(3000)
  for (const name of ['a4', 'a5', 'b5']) add(name[0]!, name)
  await setImmediate()
  await finish(50)
  t.equal(begun.at(-1), 'b5', 'b has used more in total, but its time has faded')
  await runAll()
})

t.test('The network whose next work is shorter comes first, unless other work has waited for long', async t => {
  const { queue, begun, ends, add, runAll, later } = start(t)
  const addFor = (milliseconds: number, name: string): unknown => queue.runShared([clientIn(name)], async () => {
    later(milliseconds)
    begun.push(name)
    if (name < 'f' && begun.length < 99) addFor(milliseconds, name)
  }, 1, milliseconds)
  add('x', 'x')
  await setImmediate()
  addFor(100, 'long')
  for (const name of ['a', 'b', 'c']) addFor(10, name)
  ends.shift()!()
  await runAll()
  t.strictSame(begun.slice(1, 7), ['a', 'b', 'c', 'a', 'b', 'c'])
  const passed = begun.indexOf('long')
  t.ok(passed > 10 && passed < 50, `${passed}`)
})

t.test('A single key can use the whole queue', async t => {
  const { queue, outcomes, add, runAll } = start(t)
  const all = Array.from({ length: 9 }, (_, n) => add('a', `a${n}`))
  t.equal(queue.waiting, 6)
  await runAll()
  await Promise.all(all)
  t.strictSame(Object.values(outcomes).filter(outcome => outcome === 'done').length, 7)
  t.match(outcomes, { a6: 'done', a7: 'refused', a8: 'refused' })
})

t.test('When the queue is full, the newest task of the key with the most gives way to other keys', async t => {
  const { queue, begun, outcomes, add, runAll } = start(t)
  const all = Array.from({ length: 7 }, (_, n) => add('a', `a${n}`))
  all.push(...['b1', 'c1', 'b2', 'c2'].map(name => add(name[0]!, name)))
  await setImmediate()
  t.strictSame(outcomes, { a6: 'refused', a5: 'refused', a4: 'refused', a3: 'refused' })
  t.equal(queue.waiting, 6)
  all.push(add('d', 'd1'))
  await setImmediate()
  t.match(outcomes, { a2: 'refused' }, 'among equals, the one whose turn is next')
  await runAll()
  await Promise.all(all)
  t.strictSame(begun, ['a0', 'a1', 'b1', 'c1', 'd1', 'b2', 'c2'])
})

t.test('A full queue is full for a key with the most tasks, and not for other keys', async t => {
  const { queue, add, runAll } = start(t)
  const isFullFor = (...keys: string[]) => queue.isFullFor(keys.map(key => clientIn(key)))
  const all = ['a0', 'a1', 'a2', 'a3', 'b1', 'b2'].map(name => add(name[0]!, name))
  t.equal(isFullFor('a'), false, 'not yet')
  all.push(add('c', 'c1'))
  t.strictSame([queue.waiting, ...['a', 'b', 'c', 'd'].map(key => isFullFor(key))], [6, true, true, false, false])
  t.strictSame([isFullFor('a', 'b'), isFullFor('a', 'd')], [true, false])
  await runAll()
  await Promise.all(all)
})

t.test('A task that is no longer wanted never runs, and frees its place', async t => {
  const { queue, begun, outcomes, gone, add, runAll } = start(t)
  const all = ['a1', 'a2', 'a3', 'b1', 'c1'].map(name => add(name[0]!, name))
  gone.add('a2').add('b1')
  queue.check()
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
  await t.rejects(queue.run(clientIn('a'), work), { message: 'of the work' })
  t.strictSame([queue.running, queue.waiting], [0, 0])
})

t.test('A key keeps all places alone, and half of them while others wait', async t => {
  const queue = new FairQueue({ concurrency: 4, maxLength: 9, createError: () => new Error('refused') })
  const ends: (() => void)[] = []
  const begun: string[] = []
  const add = (network: string) => queue.run(clientIn(network), () => new Promise<void>(resolve => {
    begun.push(network)
    ends.push(resolve)
  }))
  const finish = async () => {
    ends.shift()!()
    await setImmediate()
  }
  for (const network of 'aaaaaab') add(network)
  await setImmediate()
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

t.test('A network leaves half of the places free until the last other one has been away for a second', async t => {
  const later = stopClock(t)
  const createError = () => new Error('refused')
  const queue = new FairQueue({ concurrency: 4, maxLength: 9, createError })
  const ends: Record<string, (() => void)[]> = { a: [], b: [] }
  const begun: string[] = []
  const add = async (network: string) => {
    queue.run(clientIn(network), () => new Promise<void>(resolve => {
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
  queue.check()
  await setImmediate()
  t.strictSame([begun.join(''), queue.waiting], ['baaba', 1])
  later(1)
  queue.check()
  await setImmediate()
  t.strictSame([begun.join(''), queue.waiting], ['baabaa', 0], 'the place is free after the second')
  for (const network of 'aaa') await finish(network)
})

t.test('A task of several places waits until they are free, and smaller tasks do not pass it', async t => {
  const queue = new FairQueue({ concurrency: 8, maxLength: 99, createError: () => new Error('refused') })
  const ends: (() => void)[] = []
  const begun: string[] = []
  const add = (name: string, places: number) => queue.run(clientIn(name[0]!), () => new Promise<void>(resolve => {
    begun.push(name)
    ends.push(resolve)
  }), places)
  const finish = async () => {
    ends.shift()!()
    await setImmediate()
  }
  for (const name of ['a1', 'b1', 'a2', 'a3', 'c1']) add(name, 3)
  add('d1', 1)
  await setImmediate()
  t.strictSame([begun, queue.running], [['a1', 'b1'], 6], 'of two networks, one holds half of the places at most')
  await finish()
  t.strictSame(begun, ['a1', 'b1', 'c1', 'd1'])
  await finish()
  t.strictSame(begun.slice(4), ['a2'])
  while (ends.length > 0) await finish()
  t.strictSame([begun.length, queue.running], [6, 0])
  add('e1', 99)
  await setImmediate()
  t.equal(begun.at(-1), 'e1', 'a task that needs more than there is runs alone')
  await finish()
})

t.test('Clients that join waiting work share one entry, which begins when the first network may begin', async t => {
  const { queue, begun, outcomes, add, runAll, gone, later } = start(t)
  const read = async () => {
    begun.push('list')
    t.equal(queue.running, 1, 'a read takes a single place')
  }
  const from = (network: string) => [clientIn(network, () => !gone.has('list'))]
  for (const name of ['a1', 'a2', 'a3', 'b1', 'c1']) add(name[0]!, name)
  const reading = queue.runShared(from('a'), read)
  queue.join(from('b'), read)
  t.equal(queue.waiting, 5, 'one entry')
  later(1)
  t.equal(queue.join([...from('d'), ...from('d')], read), true)
  t.equal(queue.join(from('a'), async () => {}), false, 'other work')
  await runAll()
  await reading
  t.strictSame(begun, ['a1', 'b1', 'c1', 'list', 'a2', 'a3'])

  add('a', 'a4')
  const alone = queue.runShared(from('e'), read)
  queue.join(from('f'), read)
  gone.add('list')
  queue.check()
  await t.rejects(alone, { message: 'refused' })
  await runAll()
  t.equal(outcomes.a4, 'done')
})

t.test('A refusal concerns one network: an entry that others have joined stays', async t => {
  const { queue, begun, outcomes, add, runAll, later } = start(t)
  const read = async () => { begun.push('list') }
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5', 'a6']) add('a', name)
  const reading = queue.runShared([clientIn('a'), clientIn('b')], read)
  add('c', 'c1')
  await setImmediate()
  t.match(outcomes, { a6: 'refused' })
  later(1)
  await runAll()
  await reading
  t.strictSame(begun.slice(0, 3), ['a1', 'list', 'c1'])
})

t.test('Whatever networks do, all that is wanted runs once, within the limits, or is refused', async t => {
  const later = stopClock(t)
  const network = fc.constantFrom('a', 'b', 'c', 'd')
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ does: fc.constant('add' as const), network, pick: fc.nat() }) },
    { weight: 3, arbitrary: fc.record({ does: fc.constant('finish' as const), pick: fc.nat() }) },
    fc.record({ does: fc.constant('later' as const), pick: fc.constantFrom(40, 400, 20_000) }),
    fc.record({ does: fc.constant('join' as const), pick: fc.nat(), network }),
    fc.record({ does: fc.constant('drop' as const), pick: fc.nat() })
  )
  await fc.assert(fc.asyncProperty(
    fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 8 }), fc.array(step, { minLength: 20, maxLength: 60 }),
    async (concurrency, maxLength, steps) => {
      const queue = new FairQueue({ concurrency, maxLength, createError: () => new Error('refused') })
      const running = new Map<number, { places: number, end: () => void }>()
      const outcomes: string[] = []
      const tasks: (() => Promise<void>)[] = []
      const gone = new Set<number>()
      for (const { does, ...rest } of steps) {
        const { network = '', pick = 0 } = rest as { network?: string, pick?: number }
        const name = tasks.length
        if (does === 'add') {
          const places = 1 + pick % concurrency
          const task = () => new Promise<void>(resolve => {
            strictEqual(outcomes[name], undefined)
            running.set(name, { places, end: resolve })
          })
          tasks.push(task)
          const clients = [clientIn(network, () => !gone.has(name))]
          const isFull = queue.isFullFor(clients)
          queue.runShared(clients, task, places).then(
            () => { outcomes[name] = 'done' }, () => { outcomes[name] = 'refused' })
          await setImmediate()
          ok(!isFull || running.has(name) || outcomes[name] === 'refused', 'no work is kept away in vain')
        } else if (does === 'finish' && running.size > 0) {
          const [done, { end }] = [...running][pick % running.size]!
          running.delete(done)
          end()
        } else if (does === 'later') {
          later(pick)
          queue.check()
        } else if (does === 'join' && name > 0) {
          queue.join([clientIn(network, () => !gone.has(pick % name))], tasks[pick % name]!)
        } else if (does === 'drop' && name > 0) {
          gone.add(pick % name)
          queue.check()
        }
        await setImmediate()
        const places = [...running.values()].reduce((sum, { places }) => sum + places, 0)
        strictEqual(queue.running, places)
        ok(places <= concurrency && queue.waiting <= maxLength)
        ok(queue.waiting === 0 || running.size > 0, 'nothing waits for nothing')
      }
      while (running.size > 0) {
        const [[name, { end }]] = running as unknown as [[number, { end: () => void }]]
        running.delete(name)
        end()
        await setImmediate()
      }
      for (const name of tasks.keys()) ok(outcomes[name], `${name} has an outcome`)
      ok(queue.running === 0 && queue.waiting === 0)
    }
  ), { numRuns: 200 })
})

import { setImmediate } from 'node:timers/promises'

import { FairQueue } from '#lib/fair-queue.js'
import t, { type Test } from '../suite.ts'

const now = performance.now.bind(performance)

/** A queue with a concurrency of 1 and a maximum length of 6. Its clock stands still until `later`. */
function start (t: Test) {
  let time = 0
  t.intercept(performance, 'now', { value: () => time })
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

  return { queue, begun, outcomes, gone, add, runAll, later: (milliseconds: number) => { time += milliseconds } }
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

t.test('Rejections are delayed, at most as many at a time as the queue is long', async t => {
  const { queue, add, runAll } = start(t)
  const all = Array.from({ length: 7 }, () => add('a', 'a'))
  // A timer counts from the beginning of the turn.
  await setImmediate()
  const begin = now()
  const order: number[] = []
  const times = await Promise.all(Array.from({ length: 8 }, async (_, n) => {
    await t.rejects(queue.assertNotFull({ network: 'a' }).finally(() => order.push(n)))
    return now() - begin
  }))
  t.strictSame(order, [6, 7, 0, 1, 2, 3, 4, 5], 'two before any timer')
  t.ok(times.slice(0, 6).every(time => time >= 90), `${times.map(Math.round)} ms`)
  await runAll()
  await Promise.all(all)
})

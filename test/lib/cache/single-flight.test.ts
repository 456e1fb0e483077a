import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import t from 'tap'

import { singleFlight } from '#lib/cache/single-flight.js'

/** Reads that end when they are told to, in the order in which they began. */
function startReads () {
  const share = singleFlight<string>(60)
  const begun: { key: string, end: (result: string) => void, fail: (error: Error) => void }[] = []
  return {
    begun,
    read: (key: string, version?: string) => share(key, () => new Promise((resolve, reject) => {
      begun.push({ key, end: resolve, fail: reject })
    }), version),
  }
}

/** Lets everything happen that waits for nothing from outside. */
async function settle () {
  for (let turn = 0; turn < 4; turn++) await setImmediate()
}

t.test('who asks before a read has begun shares it', async t => {
  const { begun, read } = startReads()
  const answers = [read('a'), read('a')]
  await undefined
  answers.push(read('a'))
  t.equal(begun.length, 0)
  await settle()
  t.equal(begun.length, 1)
  begun[0]!.end('first')
  t.strictSame(await Promise.all(answers), ['first', 'first', 'first'])
  const later = read('a')
  await settle()
  t.equal(begun.length, 2, 'an answer is not kept')
  begun[1]!.end('second')
  t.equal(await later, 'second')
})

t.test('a read waits for as long as others join it, but for a millisecond at most', async t => {
  let now = 0
  t.capture(performance, 'now', () => now)
  const { begun, read } = startReads()
  // Before the read looks who has come, as requests are there before that.
  let turn = setImmediate()
  const answers = [read('a')]
  const nextTurn = async () => {
    await turn
    turn = setImmediate()
    answers.push(read('a'))
  }
  for (let turns = 0; turns < 10; turns++) await nextTurn()
  t.equal(begun.length, 0)
  now = 1
  await turn
  t.equal(begun.length, 1)
  const late = read('a')
  begun[0]!.end('first')
  t.strictSame(await Promise.all(answers), Array(11).fill('first'))
  await settle()
  begun[1]!.end('second')
  t.equal(await late, 'second', 'who asks when it has begun is not answered by it')
})

t.test('who asks while a read runs is answered by the next one, with all who do', async t => {
  const { begun, read } = startReads()
  const early = read('a')
  await settle()
  const waiting = [read('a'), read('a')]
  await settle()
  waiting.push(read('a'))
  t.equal(begun.length, 1, 'never two of a key at a time')

  begun[0]!.end('first')
  t.equal(await early, 'first')
  await settle()
  t.equal(begun.length, 2)
  const late = [read('a'), read('a')]
  begun[1]!.end('second')
  t.strictSame(await Promise.all(waiting), ['second', 'second', 'second'])

  await settle()
  t.equal(begun.length, 3, 'nor is it the next one for who asked while that ran')
  begun[2]!.end('third')
  t.strictSame(await Promise.all(late), ['third', 'third'])
  await settle()
  t.equal(begun.length, 3)
})

t.test('who asks at the moment at which a read ends is not answered by it', async t => {
  for (const others of ['that wait', 'or none']) {
    const { begun, read } = startReads()
    const early = read('a')
    await settle()
    const waiting = others === 'that wait' ? [read('a')] : []
    const asked: Promise<string>[] = []
    // The microtasks after the end, one by one: some come before the end is noted, some after.
    const asking = (async () => {
      await early
      for (let turn = 0; turn < 5; turn++) {
        asked.push(read('a'))
        await undefined
      }
    })()
    begun[0]!.end('0')
    await asking
    await settle()
    t.equal(begun.length, 2, others)
    begun[1]!.end('1')
    t.strictSame(await Promise.all([...waiting, ...asked]), Array(waiting.length + 5).fill('1'), others)
  }
})

t.test('a running read serves callers who know no more than was known when it began', async t => {
  const { begun, read } = startReads()
  const early = [read('a', 'v1'), read('a', 'v2'), read('a')]
  await settle()
  const same = read('a', 'v2')
  const newer = read('a', 'v3')
  const unknown = read('a')
  await settle()
  t.equal(begun.length, 1)
  begun[0]!.end('first')
  t.strictSame(await Promise.all([...early, same]), Array(4).fill('first'))
  await settle()
  t.equal(begun.length, 2)
  const late = [read('a', 'v3'), read('a', 'v2')]
  begun[1]!.end('second')
  t.strictSame(await Promise.all([newer, unknown, late[0]]), Array(3).fill('second'))
  await settle()
  begun[2]!.end('third')
  t.equal(await late[1], 'third', 'only the last version known when the read began counts')
})

t.test('keys do not wait for each other', async t => {
  const { begun, read } = startReads()
  const answers = ['a', 'b', ''].map(key => read(key))
  await settle()
  t.strictSame(begun.map(({ key }) => key), ['a', 'b', ''])
  for (const { key, end } of begun.reverse()) end(`of ${key}`)
  t.strictSame(await Promise.all(answers), ['of a', 'of b', 'of '])
})

t.test('an error reaches all who share the read, and nobody else', async t => {
  const { begun, read } = startReads()
  const early = read('a')
  await settle()
  const waiting = [read('a'), read('a')]
  begun[0]!.fail(new Error('first'))
  await t.rejects(early, { message: 'first' })
  await settle()
  t.equal(begun.length, 2, 'the next read begins all the same')
  const late = read('a')
  begun[1]!.fail(new Error('second'))
  for (const answer of waiting) await t.rejects(answer, { message: 'second' })
  await settle()
  begun[2]!.end('third')
  t.equal(await late, 'third')
})

t.test('a read that fails before it has begun does not stand in the way either', async t => {
  const share = singleFlight<string>(60)
  let end = () => {}
  const early = share('a', () => new Promise(resolve => { end = () => resolve('first') }))
  await settle()
  const broken = () => { throw new Error('broken') }
  const waiting = share('a', broken)
  end()
  t.equal(await early, 'first')
  await t.rejects(waiting, { message: 'broken' })
  await t.rejects(share('a', broken), { message: 'broken' })
  t.equal(await share('a', async () => 'third'), 'third')
})

t.test('whoever waits too long for the read of others, and for their own, is told so', async t => {
  const share = singleFlight<string>(0.1)
  let end = () => {}
  const early = share('a', () => new Promise(resolve => { end = () => resolve('first') }))
  await settle()
  const waiting = share('a', async () => 'second')
  await t.rejects(waiting, { name: 'TimeoutError', message: 'no answer within 0.1 s' })
  end()
  t.equal(await early, 'first')
  await settle()
  t.equal(await share('a', async () => 'third'), 'third')
})

t.test('nothing of a read is left when it has answered all who waited', async t => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const share = singleFlight<object>(60)
  /** What is left of answers that nobody but the reads may hold. */
  const answers = await Promise.all([{}, {}, {}].map(async answer => {
    const shared = await share('a', async () => answer)
    return new WeakRef(shared)
  }))
  await settle()
  collectGarbage()
  t.strictSame(answers.map(answer => answer.deref()), [undefined, undefined, undefined])
})

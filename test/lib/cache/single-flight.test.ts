import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { singleFlight } from '#lib/cache/single-flight.js'
import { FairQueue } from '#lib/fair-queue.js'
import t from '../../suite.ts'

/** Starts reads that end when `finish` is called, in the order in which they began. */
function startReads () {
  const share = singleFlight<string>()
  const begun: { key: string, end: (result: string) => void, fail: (error: Error) => void }[] = []
  return {
    begun,
    read: (key: string, version?: string) => share(key, () => new Promise((resolve, reject) => {
      begun.push({ key, end: resolve, fail: reject })
    }), version),
  }
}

/** Runs everything that is not waiting for I/O or timers. */
async function settle () {
  for (let turn = 0; turn < 4; turn++) await setImmediate()
}

t.test('Calls before a read begins share it', async t => {
  const { begun, read } = startReads()
  const responses = [read('a'), read('a')]
  await undefined
  responses.push(read('a'))
  t.equal(begun.length, 0)
  await settle()
  t.equal(begun.length, 1)
  begun[0]!.end('first')
  t.strictSame(await Promise.all(responses), ['first', 'first', 'first'])
  const later = read('a')
  await settle()
  t.equal(begun.length, 2, 'the result is not cached')
  begun[1]!.end('second')
  t.equal(await later, 'second')
})

t.test('Calls during a read share the next one', async t => {
  const { begun, read } = startReads()
  const early = read('a')
  await settle()
  const waiting = [read('a'), read('a')]
  await settle()
  waiting.push(read('a'))
  t.equal(begun.length, 1, 'one read of a key at a time')

  begun[0]!.end('first')
  t.equal(await early, 'first')
  await settle()
  t.equal(begun.length, 2)
  const late = [read('a'), read('a')]
  begun[1]!.end('second')
  t.strictSame(await Promise.all(waiting), ['second', 'second', 'second'])

  await settle()
  t.equal(begun.length, 3, 'a call during the second read waits for the third')
  begun[2]!.end('third')
  t.strictSame(await Promise.all(late), ['third', 'third'])
  await settle()
  t.equal(begun.length, 3)
})

t.test('A call at the moment when a read ends does not share it', async t => {
  for (const others of ['that wait', 'or none']) {
    const { begun, read } = startReads()
    const early = read('a')
    await settle()
    const waiting = others === 'that wait' ? [read('a')] : []
    const asked: Promise<string>[] = []
    // Call in each of the following microtasks: some run before the end is recorded, some after.
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

t.test('A caller with a version joins a running read that began with the same version', async t => {
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

t.test('An error rejects the calls that share the read, and no others', async t => {
  const { begun, read } = startReads()
  const early = read('a')
  await settle()
  const waiting = [read('a'), read('a')]
  begun[0]!.fail(new Error('first'))
  await t.rejects(early, { message: 'first' })
  await settle()
  t.equal(begun.length, 2, 'the next read still begins')
  const late = read('a')
  begun[1]!.fail(new Error('second'))
  for (const response of waiting) await t.rejects(response, { message: 'second' })
  await settle()
  begun[2]!.end('third')
  t.equal(await late, 'third')
})

t.test('A read that throws synchronously does not block the key', async t => {
  const share = singleFlight<string>()
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

/** Shares reads that take turns by network, one at a time. They end, one after the other, when `finish` is called. */
function startTurns (maxLength: number) {
  const queue = new FairQueue({ concurrency: 1, maxLength, maxWaitMs: 60_000, createError: () => new Error('refused') })
  const share = singleFlight<string>()
  const begun: string[] = []
  let finish = () => {}
  return {
    begun,
    read: (network: string, key: string) => share(key, () => new Promise(resolve => {
      begun.push(key)
      finish = () => resolve(key)
    }), null, { admit: begin => queue.run({ network }, begin) }),
    async finish () {
      finish()
      await settle()
    },
  }
}

t.test('A read begins when it is the turn of any of its callers', async t => {
  const { begun, read, finish } = startTurns(10)
  const flood = ['1', '2', '3', 'list'].map(key => read('flood', key))
  await settle()
  const other = read('other', 'list')
  await settle()
  t.strictSame(begun, ['1'])
  await finish()
  await finish()
  t.strictSame(begun, ['1', '2', 'list'], 'after one of each network')
  await finish()
  t.equal(await other, 'list')
  t.equal(await flood[3], 'list')
  await finish()
  t.strictSame(await Promise.all(flood), ['1', '2', '3', 'list'])
  t.strictSame(begun, ['1', '2', 'list', '3'], 'it is read once')
})

t.test('A refused caller does not affect other callers', async t => {
  const { begun, read, finish } = startTurns(2)
  const first = read('flood', '1')
  await settle()
  const flood = [read('flood', 'list'), read('flood', 'list')]
  await settle()
  const other = read('other', 'list')
  await t.rejects(flood[1]!, { message: 'refused' }, 'the newest of the network that holds the most')
  await finish()
  await finish()
  t.strictSame(await Promise.all([first, flood[0], other]), ['1', 'list', 'list'])

  const second = read('flood', '2')
  await settle()
  const waiting = ['3', '4'].map(key => read('flood', key))
  await settle()
  await t.rejects(read('flood', 'list'), { message: 'refused' })
  await finish()
  await finish()
  await finish()
  await Promise.all([second, ...waiting])
  const again = read('flood', 'list')
  await settle()
  await finish()
  t.equal(await again, 'list')
  t.strictSame(begun, ['1', 'list', '2', '3', '4', 'list'])
})

t.test('A caller that is refused during the read gets its result', async t => {
  const share = singleFlight<string>()
  let end!: () => void
  let refuse!: () => void
  const begun = share('a', () => new Promise(resolve => { end = () => resolve('result') }), null, {
    admit: async begin => {
      await settle()
      await begin()
    },
  })
  const late = share('a', async () => 'not read', null, {
    admit: () => new Promise((_resolve, reject) => { refuse = () => reject(new Error('refused')) }),
  })
  await settle()
  await settle()
  refuse()
  await settle()
  end()
  t.strictSame(await Promise.all([begun, late]), ['result', 'result'])
})

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as (options?: { type: 'minor' }) => void

t.test('Results are not retained after the calls have resolved', async t => {
  const share = singleFlight<object>()
  /** Weak references to results that only the reads could retain. */
  const responses = await Promise.all([{}, {}, {}].map(async response => {
    const shared = await share('a', async () => response)
    return new WeakRef(shared)
  }))
  await settle()
  collectGarbage()
  t.strictSame(responses.map(response => response.deref()), [undefined, undefined, undefined])
})

t.test('A chain of reads is not retained by its first read in the old generation', async t => {
  const share = singleFlight<ArrayBuffer>()
  let end!: (result: ArrayBuffer) => void
  const read = () => share('a', () => new Promise(resolve => { end = resolve }))
  read()
  await settle()
  // Moves the first read to the old generation, from where a minor collection does not remove it.
  collectGarbage()
  const before = process.memoryUsage().arrayBuffers
  for (let reads = 0; reads < 30; reads++) {
    read()
    end(new ArrayBuffer(1e6))
    await settle()
  }
  // The second collection ends the release of the first.
  for (let time = 0; time < 2; time++) collectGarbage({ type: 'minor' })
  const retained = process.memoryUsage().arrayBuffers - before
  t.ok(retained < 15e6, `${retained} bytes`)
})

import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { type Read, singleFlight } from '#lib/cache/single-flight.js'
import { FairQueue } from '#lib/http/fair-queue.js'
import { clientIn } from '../../clients.ts'
import t from '../../suite.ts'

const ALONE = [clientIn('alone')]
const createQueue = (concurrency: number, maxLength: number) =>
  new FairQueue({ concurrency, maxLength, createError: () => new Error('refused') })
const unlimited = createQueue(Infinity, Infinity)
const list = <T>(run: Read<T>['run'], queue = unlimited) => (): Read<T> => ({ queue, run })

/** Starts reads that end when `finish` is called, in the order in which they began. */
function startReads () {
  const share = singleFlight<string>()
  const begun: { key: string, end: (result: string) => void, fail: (error: Error) => void }[] = []
  return {
    begun,
    read: (key: string, snapshot?: string) => share(key, list(() => new Promise((resolve, reject) => {
      begun.push({ key, end: resolve, fail: reject })
    })), ALONE, snapshot),
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

t.test('A caller with a snapshot joins a running read that began with the same snapshot', async t => {
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
  t.equal(await late[1], 'third', 'only the last snapshot known when the read began counts')
})

t.test('Each of the clients that share a read has an equal share of its bytes', async t => {
  const share = singleFlight<string>()
  const held: number[][] = [[], []]
  const clients = held.map(list => ({ ...clientIn('a'), hold: (bytes: number) => { list.push(bytes) } }))
  await share('a', list(async hold => {
    hold(10)
    hold(20)
    return 'first'
  }), clients)
  t.strictSame(held, [[5, 10], [5, 10]])
})

t.test('A caller does not join a read that no client waits for any more', async t => {
  const share = singleFlight<string>()
  let isWanted = true
  const client = clientIn('gone', () => isWanted)
  let fetch!: () => void
  let drop!: () => void
  const fetched = new Promise<void>(resolve => { fetch = resolve })
  const dropped = new Promise<void>(resolve => { drop = resolve })
  const abandoned = share('a', list(async hold => {
    await fetched
    try {
      hold(0)
    } finally {
      await dropped
    }
    return 'first'
  }), [client], 'v1')
  await settle()
  isWanted = false
  fetch()
  await settle()
  const late = share('a', list(async () => 'second'), ALONE, 'v1')
  drop()
  await t.rejects(abandoned, { name: 'AbortError' })
  t.equal(await late, 'second')
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
  const early = share('a', list(() => new Promise(resolve => { end = () => resolve('first') })), ALONE)
  await settle()
  const broken = list<string>(() => { throw new Error('broken') })
  const waiting = share('a', broken, ALONE)
  end()
  t.equal(await early, 'first')
  await t.rejects(waiting, { message: 'broken' })
  await t.rejects(share('a', broken, ALONE), { message: 'broken' })
  t.equal(await share('a', list(async () => 'third'), ALONE), 'third')
})

/** Shares reads that take turns by network, one at a time. They end, one after the other, when `finish` is called. */
function startTurns (maxLength: number) {
  const queue = createQueue(1, maxLength)
  const share = singleFlight<string>()
  const begun: string[] = []
  let finish = () => {}
  return {
    begun,
    queue,
    read: (network: string, key: string, isWanted = true) => share(key, list(() => new Promise(resolve => {
      begun.push(key)
      finish = () => resolve(key)
    }), queue), [clientIn(network, () => isWanted)]),
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
  t.strictSame(begun, ['1', 'list'], 'the other network has used nothing')
  await finish()
  t.equal(await other, 'list')
  t.equal(await flood[3], 'list')
  await finish()
  await finish()
  t.strictSame(await Promise.all(flood), ['1', '2', '3', 'list'])
  t.strictSame(begun, ['1', 'list', '2', '3'], 'it is read once')
})

t.test('All callers of a read are one entry of the queue, which they leave together', async t => {
  const { begun, queue, read, finish } = startTurns(3)
  const first = read('flood', '1')
  await settle()
  const many = Array.from({ length: 500 }, (_, n) => read(`network ${n}`, 'list'))
  await settle()
  t.equal(queue.waiting, 1)
  const gone = read('gone', 'other', false)
  await settle()
  t.equal(queue.waiting, 2)
  queue.check()
  await t.rejects(gone, { message: 'refused' }, 'no caller of it waits')
  await finish()
  many.push(read('late', 'list'))
  await finish()
  await finish()
  t.strictSame([await first, ...await Promise.all(many)], ['1', ...Array(501).fill('list')])
  t.strictSame(begun, ['1', 'list', 'list'], 'a call during the read waits for the next one')
})

t.test('A refused read fails for its callers only, and can be read again', async t => {
  const { begun, read, finish } = startTurns(2)
  const first = read('flood', '1')
  await settle()
  const waiting = [read('flood', '2'), read('flood', 'list'), read('flood', 'list')]
  await settle()
  const other = read('other', '3')
  for (const caller of waiting.slice(1)) await t.rejects(caller, { message: 'refused' })
  await finish()
  await finish()
  const again = read('flood', 'list')
  await finish()
  await finish()
  t.strictSame(await Promise.all([first, waiting[0], other, again]), ['1', '2', '3', 'list'])
  t.strictSame(begun, ['1', '3', '2', 'list'])
})

t.test('A refusal concerns one network: a read whose first caller is refused is read for others', async t => {
  const { begun, read, finish } = startTurns(2)
  const flood = ['1', '2', '3'].map(key => read('flood', key))
  await settle()
  const [refused, other] = [read('flood', 'list'), read('other', 'list')]
  await t.rejects(flood[2]!, { message: 'refused' })
  for (let time = 0; time < 3; time++) await finish()
  t.strictSame(await Promise.all([flood[0], flood[1], refused, other]), ['1', '2', 'list', 'list'])
  t.strictSame(begun, ['1', 'list', '2'])
})

t.test('A caller that comes while the previous read runs waits for admission with the others', async t => {
  const { begun, queue, read, finish } = startTurns(9)
  const early = read('a', 'list')
  await settle()
  const next = [read('gone', 'list', false), read('a', 'list'), read('b', 'list')]
  const others = ['1', '2', '3'].map(key => read('a', key))
  await settle()
  t.equal(queue.waiting, 3, 'it is not in the queue yet')
  await finish()
  t.equal(queue.waiting, 3)
  for (let time = 0; time < 4; time++) await finish()
  t.strictSame(await Promise.all([early, ...next, ...others]), ['list', 'list', 'list', 'list', '1', '2', '3'])
  t.strictSame(begun, ['list', '1', 'list', '2', '3'], 'at the turn of b')
})

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as (options?: { type: 'minor' }) => void

t.test('Results are not retained after the calls have resolved', async t => {
  const share = singleFlight<object>()
  /** Weak references to results that only the reads could retain. */
  const responses = await Promise.all([{}, {}, {}].map(async response => {
    const shared = await share('a', list(async () => response), ALONE)
    return new WeakRef(shared)
  }))
  await settle()
  collectGarbage()
  t.strictSame(responses.map(response => response.deref()), [undefined, undefined, undefined])
})

t.test('A chain of reads is not retained by its first read in the old generation', async t => {
  const share = singleFlight<ArrayBuffer>()
  let end!: (result: ArrayBuffer) => void
  const read = () => share('a', list(() => new Promise(resolve => { end = resolve })), ALONE)
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

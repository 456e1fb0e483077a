import { mock } from 'node:test'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'

import { FairQueue } from '#lib/http/fair-queue.js'
import { LiveLists } from '#lib/live/live-lists.js'
import { clientIn } from '../../clients.ts'
import t from '../../suite.ts'

// The tests tell when half a second has passed.
t.beforeEach(() => mock.timers.enable({ apis: ['setInterval'] }))
t.afterEach(() => mock.timers.reset())

/** Lists of a database that a test changes: a number per list, which is its entity tag. */
function start (length = 100) {
  const values: Record<string, number> = { '/slow': 0, '/fast': 0 }
  let snapshot = 0
  const database = {
    change (url: string) {
      values[url]!++
      snapshot++
    },
    isAway: false,
    isClosing: false,
    minute: '10:00',
    questions: 0,
    /** Resolves questions for the snapshot, if it is set. */
    answer: undefined as Promise<void> | undefined,
    reads: 0,
    /** Resolves the read of `/slow`. */
    finish: () => {},
  }
  const queue = new FairQueue({ concurrency: 2, maxLength: 100, createError: () => new Error('refused') })
  const live = new LiveLists({
    async readSnapshot () {
      database.questions++
      await nextTurn()
      await database.answer
      if (database.isAway) throw new Error('away')
      return { id: String(snapshot) }
    },
    currentMinute: () => database.minute,
    async readEtag ({ url }) {
      database.reads++
      const etag = String(values[url] ?? 0)
      if (url === '/slow' && snapshot > 0) await new Promise<void>(resolve => { database.finish = resolve })
      return { etag, length }
    },
  }, { queue, maxListeners: 4000, isClosing: () => database.isClosing })
  const open = (...urls: string[]) => openFrom('192.0.2.1', ...urls)
  const openFrom = (network: string, ...urls: string[]) => {
    const lists = urls.map(url => ({ url, picturesUrl: null, key: url }))
    const stream = live.open(clientIn(network), lists, '', () => 0)!
    t.teardown(() => stream.destroy())
    const client = { stream, text: '' }
    stream.on('data', text => { client.text += text })
    return client
  }
  /** Waits until nothing more happens. 1,000 clients are told in ten turns of the event loop, twice in a tick. */
  const settle = async () => {
    for (let turn = 0; turn < 50 || queue.running + queue.waiting > 0; turn++) await nextTurn()
  }
  const tick = async () => {
    mock.timers.tick(500)
    await settle()
  }
  return { live, open, openFrom, settle, tick, database, queue }
}

t.test('A list whose client has gone in the meantime is not read', async t => {
  const { open, settle, database } = start()
  let answer = () => {}
  database.answer = new Promise<void>(resolve => { answer = resolve })
  open('/fast').stream.destroy()
  await settle()
  answer()
  await settle()
  t.strictSame([database.questions, database.reads], [1, 0])
})

t.test('A slow list delays no other list', async t => {
  const { open, settle, tick, database } = start()
  const [slow, fast] = [open('/slow'), open('/fast')]
  await settle()
  database.change('/slow')
  await tick()
  database.change('/fast')
  await tick()
  t.match(fast.text, /^id: 1$/m)
  t.notMatch(slow.text, /^id: 1$/m)
  t.equal(database.reads, 5, 'nor is it read twice at once')
  database.finish()
  await settle()
  t.match(slow.text, /^id: 1$/m)
})

t.test('A slow list does not delay the first message of another list', async t => {
  const { open, settle, tick, database } = start()
  database.change('/slow')
  const client = open('/slow', '/fast')
  await settle()
  t.match(client.text, /^id: ,0$/m)
  database.change('/fast')
  await tick()
  t.match(client.text, /^id: ,1$/m)
  database.finish()
  await settle()
  t.match(client.text, /^id: 1,1$/m)
})

t.test('A slow database gets a single question at a time', async t => {
  const { open, settle, tick, database } = start()
  open('/fast')
  await settle()
  let answer = () => {}
  database.answer = new Promise(resolve => { answer = resolve })
  await tick()
  await tick()
  await tick()
  t.equal(database.questions, 2)
  answer()
  await settle()
  await tick()
  t.equal(database.questions, 3)
})

t.test('A stream stays open while the database is away, and tells what has changed', async t => {
  const { live, open, settle, tick, database } = start()
  const { stream } = open('/fast')
  await settle()
  database.isAway = true
  database.change('/fast')
  const later = open('/fast')
  await tick()
  t.equal(live.clients, 2)
  t.equal(later.text, ':\n\n')
  database.isAway = false
  await tick()
  t.match(later.text, /^id: 1$/m)
  t.notOk(stream.destroyed)
})

t.test('A ping at every thirtieth tick keeps proxies awake', async t => {
  const { open, settle, tick } = start()
  const client = open('/fast')
  await settle()
  const { text } = client
  for (let n = 0; n < 30; n++) await tick()
  t.equal(client.text, text + 'event: ping\ndata: {}\n\n')
})

/** Returns a function that returns the number of the turn of the event loop, of those in which it is called. */
function countTurns () {
  let turn = 0
  let next: NodeJS.Immediate | undefined
  return () => {
    if (!next) turn++
    next ??= setImmediate(() => { next = undefined })
    return turn
  }
}

/** How often each of these turns occurs. */
function sizesOf (turns: number[]) {
  return [...new Set(turns)].map(turn => turns.filter(other => other === turn).length)
}

t.test('Many clients hear of a change over several turns of the event loop, each once', async t => {
  const { live, open, settle, tick, database } = start()
  const clients = Array.from({ length: 1000 }, () => open('/fast'))
  await settle()
  t.equal(live.counts.messages, 1000, 'the first message of each')
  const turnNow = countTurns()
  const told = new Map<typeof clients[0], number>()
  let newcomer: typeof clients[0] | undefined
  for (const client of clients) {
    client.stream.on('data', () => {
      if (told.size === 0) {
        // From now on, clients wait for their batch.
        clients.at(-1)!.stream.destroy()
        database.change('/fast')
        newcomer = open('/fast')
        newcomer.stream.on('data', text => { if (String(text).includes('id: 2')) told.set(newcomer!, turnNow()) })
      }
      if (!told.has(client)) told.set(client, turnNow())
    })
  }
  database.change('/fast')
  await tick()
  await tick()

  const [gone] = clients.splice(-1)
  t.notMatch(gone!.text, /^id: 1/m, 'a client that has left is left alone')
  const perTurn = sizesOf(clients.map(client => told.get(client)!))
  t.ok(Math.max(...perTurn) <= 100, `${Math.max(...perTurn)} in a turn`)
  t.ok(told.get(newcomer!)! < told.get(clients.at(-1)!)!, 'a new client does not wait for the others')
  const ids = new Set(clients.map(({ text }) => text.match(/^id: .*$/gm)!.join()))
  t.strictSame([...ids].filter(told => !/^id: 0,(id: 1,)?id: 2$/.test(told)), [], 'nothing twice, nothing missed')
})

t.test('Pings and the end of streams reach many clients over several turns', async t => {
  const { live, open, settle, tick, database } = start()
  const clients = Array.from({ length: 1000 }, () => open('/fast'))
  await settle()
  const turnNow = countTurns()
  for (const [sign, cause] of [
    ['event: ping', () => { live.counts.ticks = 29 }],
    ['retry', () => { database.isClosing = true }],
  ] as const) {
    const told: number[] = []
    for (const { stream } of clients) {
      stream.on('data', text => { if (String(text).startsWith(sign)) told.push(turnNow()) })
    }
    cause()
    await tick()
    t.equal(told.length, 1000, sign)
    const perTurn = sizesOf(told)
    t.ok(Math.max(...perTurn) <= 100, `${sign}: ${Math.max(...perTurn)} in a turn`)
  }
  t.ok(clients.every(({ stream }) => stream.readableEnded))
})

t.test('Lists are read only after a change, and nothing is asked without clients', async t => {
  const { live, open, settle, tick, database } = start()
  const one = open('/fast')
  await settle()
  t.equal(database.reads, 1)
  open('/fast').stream.destroy()
  database.change('/fast')
  await tick()
  t.match(one.text, /^id: 1$/m, 'although a different client of the list has left')
  t.equal(database.reads, 2)
  one.stream.destroy()
  await settle()
  const { ticks } = live.counts
  await tick()
  t.equal(live.counts.ticks, ticks)
  t.equal(live.clients, 0)
})

t.test('A list is read once per minute without a change, because its query can depend on the time', async t => {
  const { open, settle, tick, database } = start()
  open('/fast')
  await settle()
  await tick()
  t.equal(database.reads, 1)
  database.minute = '10:01'
  await tick()
  await tick()
  t.equal(database.reads, 2)
})

t.test('Lists for which the queue has no place are read in later ticks, without a refusal', async t => {
  const { open, settle, tick, database, queue } = start()
  for (let n = 0; n < 20; n++) open(...Array.from({ length: 8 }, (_, list) => `/${n}${list}`))
  await settle()
  t.equal(database.reads, 160)
  database.change('/fast')
  while (database.reads < 320) await tick()
  t.equal(queue.refused, 0)
})

t.test('Long lists of a network are read in turn, as fast as it pays for them, and not those of others', async t => {
  const { open, openFrom, settle, database } = start(200_000)
  for (let n = 0; n < 5; n++) open(...Array.from({ length: 8 }, (_, list) => `/long?${n}${list}`))
  const client = openFrom('192.0.2.2', '/fast')
  await settle()
  const { reads } = database
  const began = performance.now()
  let changes = 0
  const longReads = () => database.reads - reads - changes
  while (longReads() < 8) {
    database.change('/fast')
    changes++
    for (; !client.text.includes(`id: ${changes}\n`); await sleep(20)) mock.timers.tick(500)
  }
  const perSecond = longReads() / (performance.now() - began) * 1000
  t.ok(perSecond > 5 && perSecond < 15, `${perSecond} reads per second, of 80`)
})

t.test('The long lists of two networks do not hold both places until they have paid', async t => {
  const { openFrom, settle, database } = start(20_000_000)
  openFrom('192.0.2.1', '/long')
  openFrom('192.0.2.2', '/longer')
  const client = openFrom('192.0.2.3', '/fast')
  await settle()
  database.change('/fast')
  const began = performance.now()
  mock.timers.tick(500)
  while (!client.text.includes('id: 1\n')) await nextTurn()
  // Each of the long lists pays for 10 seconds.
  t.ok(performance.now() - began < 9000)
})

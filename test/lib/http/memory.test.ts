import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { runInNewContext } from 'node:vm'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'

import { createMeter, Memory, memoryLimit, spareMemory } from '#lib/http/memory.js'
import { Connections } from '#lib/http/connections.js'
import t from '../../suite.ts'

const MB = 2 ** 20

/** A process with 512 MB, whose connections tell how many bytes have arrived and wait. */
function start () {
  const connections = new Connections()
  const memory = new Memory(512 * MB, connections)
  const open = (network: string, name: string, requests = 0, ended = 0) => {
    const socket = {
      name,
      bytesRead: 0,
      writableLength: 0,
      destroyed: false,
      destroy () { socket.destroyed = true },
    }
    const responses = new Set(Array.from({ length: requests }, () => ({}) as ServerResponse))
    connections.set(socket as unknown as Socket, {
      network,
      isShared: false,
      responses,
      latest: connections.size,
      bytesRead: ended,
      counted: 0,
      turn: 0,
      hasFlooded: false,
    })
    return socket
  }
  return { memory, connections, open }
}

const closed = (sockets: { name: string, destroyed: boolean }[]) =>
  sockets.filter(({ destroyed }) => destroyed).map(({ name }) => name).join(' ')

t.test('Past a share of the memory, connections of the network that holds most are closed', async t => {
  const { memory, open } = start()
  const sockets = [open('a', 'a1'), open('a', 'a2'), open('b', 'b1'), open('c', 'c1')]
  const [a1, a2, b1] = sockets
  a1!.bytesRead = 2 * MB
  a2!.writableLength = 3 * MB
  b1!.bytesRead = 4 * MB
  memory.enforce({ resident: 400 * MB })
  t.equal(closed(sockets), '', 'enough memory')
  memory.enforce({ resident: 420 * MB })
  t.equal(closed(sockets), 'a2 b1', 'without the 3 MB, b holds more than a')
  t.equal(memory.closed, 2)
  memory.enforce({ resident: 425 * MB })
  t.equal(closed(sockets), 'a2 b1', 'freed memory stays resident')
  memory.enforce({ resident: 440 * MB })
  t.equal(closed(sockets), 'a1 a2 b1', 'further growth')
  memory.enforce({ resident: 500 * MB })
  t.equal(closed(sockets), 'a1 a2 b1', 'a network that holds nothing loses nothing')
  memory.enforce({ resident: 200 * MB })
  const late = open('d', 'd1')
  late.bytesRead = MB
  memory.enforce({ resident: 400 * MB })
  t.notOk(late.destroyed, 'the limit is not lower than before')
  memory.enforce({ resident: 415 * MB })
  t.ok(late.destroyed, 'the limit is as before when the memory was free')
})

t.test('A connection weighs what was read for its responses, but no list that it watches', t => {
  const { memory, connections, open } = start()
  const sockets = [open('a', 'a1', 1), open('b', 'b1', 1), open('c', 'c1', 1)]
  const [a, , c] = [...connections.values()].map(({ responses }) => [...responses][0]!)
  connections.bytesFor.set(a!, 2 * MB)
  connections.bytesFor.set(c!, 9 * MB)
  connections.streams.add(c!)
  memory.enforce({ resident: 420 * MB })
  t.equal(closed(sockets), 'a1')
  t.end()
})

t.test('A network that holds less than the others loses no connection', async t => {
  const { memory, connections, open } = start()
  const listeners = Array.from({ length: 100 }, (_, n) => open('a', `a${n}`, 1))
  for (const listener of listeners) listener.bytesRead = 400
  for (const { responses } of connections.values()) for (const response of responses) connections.streams.add(response)
  const request = open('a', 'a100', 1)
  const others = Array.from({ length: 400 }, (_, n) => open(`${n}`, `${n}`, 1))
  memory.enforce({ resident: 420 * MB })
  for (let turn = 0; turn < 2; turn++) await setImmediate()
  t.equal(closed([...listeners, request]), 'a100', 'together, its request and its streams are the most')
  t.equal(closed(others).split(' ').length, 200)
})

t.test('Networks that hold little lose connections if all together hold much', async t => {
  const { memory, open } = start()
  const sockets = Array.from({ length: 400 }, (_, n) => open(`${n}`, `${n}`, 1))
  memory.enforce({ resident: 420 * MB })
  t.equal(closed(sockets).split(' ').length, 100, 'in this turn of the event loop')
  await setImmediate()
  t.equal(closed(sockets).split(' ').length, 200)
})

t.test('The heap counts after a full collection', async t => {
  const { memory, open } = start()
  const socket = open('a', 'a1')
  socket.bytesRead = MB
  memory.enforce({ heap: 150 * MB, resident: 200 * MB })
  t.notOk(socket.destroyed)
  memory.enforce({ heap: 160 * MB, resident: 200 * MB })
  t.ok(socket.destroyed)
})

t.test('If much is held after a full collection, freed memory that is resident does not count', async t => {
  const { memory, open } = start()
  memory.enforce({ resident: 490 * MB })
  const socket = open('a', 'a1')
  socket.bytesRead = 200 * MB
  memory.enforce({ resident: 495 * MB })
  t.notOk(socket.destroyed, 'further growth would close it')
  memory.enforce({ heap: 60 * MB, held: 250 * MB, resident: 495 * MB })
  t.notOk(socket.destroyed)
  memory.enforce({ heap: 60 * MB, held: 260 * MB, resident: 400 * MB })
  t.notOk(socket.destroyed, 'enough memory')
  memory.enforce({ heap: 60 * MB, held: 260 * MB, resident: 495 * MB })
  t.ok(socket.destroyed)
})

t.test('Requests without a response have weight, and of equal connections the latest is closed', async t => {
  const { memory, connections, open } = start()
  const sockets = Array.from({ length: 40 }, (_, n) => open('a', `a${n}`, 1))
  for (const [n, connection] of [...connections.values()].entries()) connection.latest = 40 - n
  memory.enforce({ heap: 200 * MB, resident: 0 })
  t.equal(closed(sockets), sockets.slice(0, 20).map(({ name }) => name).join(' '))
})

t.test('Connections without a request have weight', async t => {
  const { memory, open } = start()
  const sockets = Array.from({ length: 600 }, (_, n) => open('a', `a${n}`))
  memory.enforce({ heap: 200 * MB, resident: 0 })
  t.equal(memory.closed, 300)
  for (let turn = 0; turn < 3; turn++) await setImmediate()
  t.equal(closed(sockets).split(' ').length, 300)
})

t.test('A stream of changes weighs no more than its request', async t => {
  const { memory, connections, open } = start()
  const listeners = Array.from({ length: 100 }, (_, n) => open('a', `a${n}`, 1))
  const greedy = Array.from({ length: 200 }, (_, n) => open('c', `c${n}`, 1))
  for (const listener of listeners) listener.bytesRead = 200
  for (const listener of greedy) listener.bytesRead = 20_000
  for (const { responses } of connections.values()) for (const response of responses) connections.streams.add(response)
  const others = Array.from({ length: 50 }, (_, n) => open('b', `b${n}`, 1))
  memory.enforce({ heap: 200 * MB, resident: 0 })
  await setImmediate()
  const lost = () => [listeners, greedy, others].map(sockets => sockets.filter(({ destroyed }) => destroyed).length)
  t.strictSame(lost(), [0, 108, 23], 'the others hold as much afterwards')
  for (const { destroy } of greedy) destroy()
  memory.enforce({ heap: 200 * MB, resident: 0 })
  t.strictSame(lost(), [0, 200, 37])
  open('a', 'a100').bytesRead = 9 * MB
  memory.enforce({ heap: 200 * MB, resident: 0 })
  t.equal(closed(listeners), '', 'nor does a network with a heavy connection lose them')
})

t.test('Bytes of requests that have ended do not count', async t => {
  const { memory, open } = start()
  const sockets = [open('a', 'done', 0, 9 * MB), open('b', 'open', 1)]
  sockets[0]!.bytesRead = 9 * MB
  sockets[1]!.bytesRead = MB
  memory.enforce({ heap: 200 * MB, resident: 0 })
  t.equal(closed(sockets), 'open')
})

t.test('The memory is that of the control group, or twice the largest heap', async t => {
  t.equal(memoryLimit(512 * MB), 512 * MB)
  t.ok(memoryLimit(0) > 100 * MB && memoryLimit(0) <= 2 * getHeapStatistics().heap_size_limit)
  t.equal(memoryLimit(2 ** 64), memoryLimit(0))
})

t.test('A conversion may take what the resident set has below its limit, except 116 MB, at most 49 %', async t => {
  t.equal(spareMemory(256 * MB), 0.8 * 256 * MB - 116 * MB)
  t.equal(spareMemory(512 * MB), 0.49 * 512 * MB)
  t.equal(spareMemory(), spareMemory(memoryLimit()))
})

for (const name of ['heap', 'resident']) {
  t.test(`The meter tells what is held after a full collection if ${name} is larger than its limit`, async t => {
    const measure = createMeter({ heap: Infinity, resident: Infinity, [name]: 0 })
    measure()
    setFlagsFromString('--expose-gc')
    runInNewContext('gc')()
    const { heap, held, resident } = measure()
    t.ok(heap! > MB && held! > heap! && resident > held!)
    t.match(measure(), { heap: undefined, held: undefined }, 'no collection since')
  })
}

t.test('The meter does not look at collections while little is used', async t => {
  const measure = createMeter({ heap: Infinity, resident: Infinity })
  measure()
  runInNewContext('gc')()
  t.equal(measure().heap, undefined)
})

import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { mock } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'

import { Connections } from '#lib/http/connections.js'
import t, { type Test } from '../../suite.ts'

/** Creates connections, with a clock that stands still. */
function start (t: Test) {
  let now = 1
  const clock = mock.method(performance, 'now', () => now)
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => {
    clock.mock.restore()
    mock.timers.reset()
  })
  const connections = new Connections()
  return {
    connections,
    /** Opens a connection, which is read from the next turn on. */
    async open (network: string, isShared = false) {
      const socket = Object.assign(new Duplex({ read () {} }), { bytesRead: 0 }) as unknown as Socket
      connections.add(socket, network, isShared)
      t.ok(socket.isPaused())
      await nextTurn()
      return socket
    },
    /** Closes a connection that floods, in a turn of so much time. */
    flood (socket: Socket, milliseconds = 25) {
      connections.closeFlood(socket)
      now += milliseconds
    },
    /** Receives a request of so many bytes, which takes so much time. */
    receive (socket: Socket, bytes: number, milliseconds = 0) {
      Object.assign(socket, { bytesRead: socket.bytesRead + bytes })
      connections.count(socket)
      now += milliseconds
    },
    wait (milliseconds: number) {
      now += milliseconds
      mock.timers.tick(milliseconds)
    },
  }
}

const arePaused = (...sockets: Socket[]) => sockets.map(socket => socket.isPaused())

/** Returns the names of connections in the order in which they are read again. */
function orderOf (sockets: Record<string, Socket>) {
  const order: string[] = []
  for (const [name, socket] of Object.entries(sockets)) socket.on('resume', () => { order.push(name) })
  return order
}

t.test('After 2 MB or 5 ms of requests, others are read next, and those that were read a turn later', async t => {
  const { open, receive } = start(t)
  const [busy, other, idle] = [await open('a'), await open('b'), await open('b')]
  const order = orderOf({ idle, other, busy })
  for (const [bytes, milliseconds] of [[2 ** 21, 0], [1, 6]] as const) {
    receive(other, 0)
    await nextTurn()
    receive(busy, bytes, milliseconds)
    t.strictSame(arePaused(busy, other, idle), [false, false, false])
    receive(busy, 1)
    t.strictSame(arePaused(busy, other, idle), [true, true, true])
    receive(busy, 1)
    await nextTurn()
    t.strictSame(arePaused(busy, other, idle), [true, false, false])
    await nextTurn()
    t.strictSame(order.splice(0), ['idle', 'other', 'busy'])
  }
})

t.test('Networks that ended a turn are read last, for half a second', async t => {
  const { open, receive, wait } = start(t)
  const [a1, a2, b1] = [await open('a'), await open('a'), await open('b')]
  const order = orderOf({ a1, a2, b1 })
  /** A turn that a request of this connection ends, by its bytes or its time. */
  const end = async (socket: Socket, bytes: number, milliseconds = 0) => {
    receive(b1, 1)
    await nextTurn()
    receive(socket, bytes, milliseconds)
    receive(socket, 1)
    await nextTurn()
    await nextTurn()
    return order.splice(0)
  }
  t.strictSame(await end(await open('c'), 2 ** 21 + 1), ['a1', 'a2', 'b1'])
  t.strictSame(await end(a1, 1, 6), ['b1', 'a2', 'a1'])
  t.strictSame(await end(await open('c'), 1, 6), ['b1', 'a2', 'a1'])
  wait(501)
  t.strictSame(await end(await open('c'), 1, 6), ['a2', 'a1', 'b1'])
})

t.test('The network whose request took the time has ended a turn, and later requests do not end it again', async t => {
  const { open, receive } = start(t)
  const [a, b, c] = [await open('a'), await open('b'), await open('c')]
  const order = orderOf({ a, b, c })
  receive(a, 1, 6)
  for (const later of [b, c]) receive(later, 1)
  await nextTurn()
  await nextTurn()
  t.strictSame(order, ['b', 'c', 'a'])
})

t.test('If it takes long to stop reading, a turn is at least twice as long', async t => {
  const { open, receive, wait } = start(t)
  const [busy, other] = [await open('a'), await open('b')]
  other.once('pause', () => wait(4))
  receive(busy, 1, 6)
  receive(busy, 1)
  await nextTurn()
  await nextTurn()
  receive(busy, 1, 7)
  receive(busy, 1, 2)
  t.strictSame(arePaused(busy, other), [false, false])
  receive(busy, 1)
  t.strictSame(arePaused(busy, other), [true, true])
})

t.test('The time to read connections again is not time of requests', async t => {
  const { open, receive, wait } = start(t)
  const [busy, other] = [await open('a'), await open('b')]
  receive(busy, 2 ** 21 + 1)
  await nextTurn()
  wait(20)
  receive(other, 1)
  t.strictSame(arePaused(busy, other), [true, false])
})

t.test('A new connection comes after the others, even if they were paused later in its turn', async t => {
  const { connections, open, flood } = start(t)
  const [flooding, other] = [await open('a'), await open('b')]
  const next = open('c')
  flood(flooding)
  const order = orderOf({ next: [...connections.keys()].at(-1)!, other })
  await next
  t.strictSame(order, ['other', 'next'])
})

t.test('A flood closes its connection, and its network is not read for four times as long', async t => {
  const { open, flood, wait } = start(t)
  const [flooding, known, shared] = [await open('a'), await open('a'), await open('a', true)]
  const [other, floodingToo] = [await open('b'), await open('c')]
  flood(flooding)
  t.strictSame([flooding, known, other].map(({ destroyed }) => destroyed), [true, false, false])
  t.strictSame(arePaused(known, shared, other), [true, true, true])
  // As Node does for a body.
  known.resume()
  await nextTurn()
  const later = await open('a')
  t.strictSame(arePaused(known, later, shared, other), [true, true, false, false])
  wait(60)
  flood(floodingToo, 0)
  await nextTurn()
  // Further requests that were read from the closed connection do not count.
  flood(flooding, 0)
  wait(39)
  t.strictSame(arePaused(known, later), [true, true])
  wait(1)
  t.strictSame(arePaused(known, later), [false, false])
})

t.test('For a minute, a network is not read after a flood of another network either', async t => {
  const { open, flood, wait } = start(t)
  const [flooding, known, ...others] = [await open('a'), await open('a'), await open('b'), await open('b')]
  flood(flooding, 0)
  await nextTurn()
  wait(1)
  for (const [n, isPaused] of [true, false].entries()) {
    wait(n === 0 ? 59_999 : 1)
    flood(others[n]!, 0)
    await nextTurn()
    t.strictSame(arePaused(known), [isPaused])
  }
})

t.test('Of too many new connections after floods, the newest of the network with the most closes', async t => {
  const { open, flood, receive } = start(t)
  for (const network of ['a', 'b']) flood(await open(network))
  await nextTurn()
  const openAll = (network: string, count: number) => Promise.all(Array.from({ length: count }, () => open(network)))
  const [few, many] = [await openAll('b', 28), await openAll('a', 100)]
  await openAll('b', 1)
  const closed = (sockets: Socket[]) => sockets.flatMap(({ destroyed }, n) => destroyed ? [n] : [])
  t.strictSame([closed(few), closed(many)], [[], [99]])
  receive(many[0]!, 1)
  many[1]!.destroy()
  await nextTurn()
  await openAll('b', 2)
  t.strictSame([closed(few), closed(many)], [[], [1, 99]], 'requests and closed connections do not count')
  await openAll('c', 1)
  t.strictSame(closed(many), [1, 99], 'others do not count')
})

t.test('Of networks that flooded, the one whose last flood is longest ago is read first', async t => {
  const { connections, open, flood, wait } = start(t)
  const [b, c, a] = [await open('b'), await open('c'), await open('a')]
  for (const network of ['a', 'b', 'c']) {
    flood(await open(network))
    await nextTurn()
  }
  t.strictSame(arePaused(a, b, c), [true, true, true])
  const next = open('d')
  const order = orderOf({ b, c, a, d: [...connections.keys()].at(-1)! })
  wait(100)
  await next
  t.strictSame(order, ['d', 'a', 'b', 'c'])
})

t.test('Further requests of a flood do not pause the others again, which takes time', async t => {
  const { open, flood } = start(t)
  const [flooding, other] = [await open('a'), await open('b')]
  let times = 0
  const pause = other.pause.bind(other)
  other.pause = () => {
    times++
    return pause()
  }
  for (let n = 0; n < 3; n++) flood(flooding)
  t.equal(times, 1)
})

t.test('After a flood, others are read in the next turn, unless Node has paused them', async t => {
  const { open, flood } = start(t)
  const [flooding, read, paused] = [await open('a'), await open('b'), await open('b')]
  paused.pause()
  flood(flooding)
  t.strictSame(arePaused(read, paused), [true, true])
  await nextTurn()
  t.strictSame(arePaused(read, paused), [false, true])
})

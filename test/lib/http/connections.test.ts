import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { mock } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'

import { Connections } from '#lib/http/connections.js'
import t, { type Test } from '../../suite.ts'

/** Creates connections, with a clock that stands still. */
function start (t: Test) {
  let now = 0
  const clock = mock.method(performance, 'now', () => now)
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => {
    clock.mock.restore()
    mock.timers.reset()
  })
  const connections = new Connections()
  const begun: string[] = []
  return {
    begun,
    open (network: string, isShared = false) {
      const socket = Object.assign(new Duplex({ read () {} }), { bytesRead: 0 }).resume() as unknown as Socket
      connections.add(socket, network, isShared)
      return socket
    },
    flood: (socket: Socket) => connections.closeFlood(socket),
    /** Begins a request of the connection, which takes so much time. */
    begin (socket: Socket, name: string, milliseconds: number) {
      connections.begin(socket, () => {
        begun.push(name)
        now += milliseconds
      })
    },
    wait (milliseconds: number) {
      now += milliseconds
      mock.timers.tick(milliseconds)
    },
  }
}

const arePaused = (...sockets: Socket[]) => sockets.map(socket => socket.isPaused())

t.test('After 5 ms of requests, further ones wait, and networks take turns', async t => {
  const { begun, open, begin } = start(t)
  const [busy, other] = [open('a'), open('b')]
  for (let n = 1; n <= 8; n++) begin(busy, `a${n}`, 3)
  begin(other, 'b1', 3)
  begin(other, 'b2', 3)
  t.strictSame(begun, ['a1', 'a2'])
  await nextTurn()
  t.strictSame(begun.slice(2), ['a3', 'b1'])
  await nextTurn()
  t.strictSame(begun.slice(4), ['a4', 'b2'])
  begin(open('c'), 'c', 0)
  t.equal(begun.length, 6, 'A request waits behind others that wait.')
  await nextTurn()
  t.strictSame(begun.slice(6), ['a5', 'c', 'a6'])
  for (let n = 1; n <= 2; n++) await nextTurn()
  begin(other, 'b3', 0)
  t.strictSame(begun.slice(9), ['a7', 'a8', 'b3'])
})

t.test('A connection is not read while its request waits', async t => {
  const { open, begin } = start(t)
  const [busy, waiting] = [open('a'), open('b')]
  begin(busy, 'a', 5)
  begin(waiting, 'b1', 5)
  begin(waiting, 'b2', 0)
  t.strictSame(arePaused(busy, waiting), [false, true])
  // As Node does for a body.
  waiting.resume()
  for (let n = 1; n <= 2; n++) {
    await nextTurn()
    t.strictSame(arePaused(waiting), [true], `after turn ${n}`)
  }
  await nextTurn()
  t.strictSame(arePaused(waiting), [false])
})

t.test('The request of a connection that closes while it waits never begins', async t => {
  const { begun, open, begin } = start(t)
  const [busy, waiting] = [open('a'), open('b')]
  begin(busy, 'a', 5)
  begin(waiting, 'b', 0)
  waiting.destroy()
  for (let n = 1; n <= 3; n++) await nextTurn()
  t.strictSame(begun, ['a'])
})

t.test('After 2 MB of requests, other connections are read in the next turn', async t => {
  const { begun, open, begin } = start(t)
  const [one, other] = [open('a'), open('b')]
  const receive = (bytes: number) => {
    Object.assign(one, { bytesRead: one.bytesRead + bytes })
    begin(one, 'a', 0)
    return arePaused(one, other)
  }
  for (let n = 1; n <= 2; n++) {
    t.strictSame(receive(2 ** 21), [false, false])
    t.strictSame(receive(1), [true, true])
    await nextTurn()
    t.strictSame(arePaused(one, other), [false, false])
  }
  t.equal(begun.length, 4)
})

t.test('A flood closes its connection, and its network is not read for 100 ms', async t => {
  const { open, flood, wait } = start(t)
  const [flooding, next, known, shared, other] = [open('a'), open('a'), open('a'), open('a', true), open('b')]
  flood(flooding)
  t.strictSame([flooding, next, known, other].map(({ destroyed }) => destroyed), [true, false, false, false])
  t.strictSame(arePaused(next, known, shared, other), [true, true, true, true])
  const [later, different] = [open('a'), open('b')]
  await nextTurn()
  t.strictSame(arePaused(next, known, later, shared, other, different), [true, true, true, false, false, false])
  wait(60)
  flood(next)
  wait(60)
  // Further requests that were read from the closed connection do not count.
  flood(next)
  wait(39)
  await nextTurn()
  t.strictSame(arePaused(known, later), [true, true])
  wait(1)
  t.strictSame(arePaused(known, later), [false, false])
})

t.test('A network that flooded within the last second is not read after floods of others either', async t => {
  const { open, flood, wait } = start(t)
  const [one, other] = [open('a'), open('a')]
  flood(one)
  for (const isPaused of [true, false]) {
    wait(901)
    flood(open('b'))
    await nextTurn()
    t.strictSame(arePaused(other), [isPaused])
  }
})

t.test('A network is read a second after its last flood, even if others flood without a pause', async t => {
  const { open, flood, wait } = start(t)
  const [one, other] = [open('a'), open('a')]
  flood(one)
  for (const [seconds, isPaused] of [[0.96, true], [0.08, false]] as const) {
    for (let n = 0; n < seconds / 0.08; n++) {
      wait(80)
      flood(open('b'))
    }
    await nextTurn()
    t.strictSame(arePaused(other), [isPaused])
  }
})

t.test('After a flood, others are read in the next turn, unless Node has paused them', async t => {
  const { open, flood } = start(t)
  const [flooding, read, paused] = [open('a'), open('b'), open('b')]
  paused.pause()
  flood(flooding)
  t.strictSame(arePaused(read, paused), [true, true])
  await nextTurn()
  t.strictSame(arePaused(read, paused), [false, true])
})

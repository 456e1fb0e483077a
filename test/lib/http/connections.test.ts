import type { Socket } from 'node:net'
import { nextTick as callNextTick } from 'node:process'
import { mock } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'

import { Connections } from '#lib/http/connections.js'
import t, { type Test } from '../../suite.ts'

const nextTick = promisify(callNextTick)

function start () {
  const connections = new Connections()
  const resumed: object[] = []
  const open = (network: string) => {
    const socket = {
      destroyed: false,
      paused: false,
      destroy () { socket.destroyed = true },
      isPaused: () => socket.paused,
      pause () { socket.paused = true },
      resume () {
        socket.paused = false
        resumed.push(socket)
      },
      request () { connections.countRequest(connections.get(socket as unknown as Socket)!) },
    }
    connections.set(socket as unknown as Socket, { network, responses: new Set(), bytesRead: 0, readAt: 0 })
    return socket
  }
  return { open, resumed, flood: (socket: object) => connections.closeFlood(socket as Socket) }
}

/** Sets the time of the process. */
function setClock (t: Test) {
  const clock = { time: 1000 }
  const { mock: mocked } = mock.method(performance, 'now', () => clock.time)
  t.teardown(() => mocked.restore())
  return clock
}

t.test('A flood closes its connection, and new ones of its network for 100 ms', async t => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const { open, flood } = start()
  const [flooding, next, known, other] = [open('a'), open('a'), open('a'), open('b')]
  flood(flooding)
  t.strictSame([flooding, next, known, other].map(({ destroyed }) => destroyed), [true, false, false, false])
  t.strictSame([open('a').destroyed, open('b').destroyed], [true, false])
  mock.timers.tick(60)
  flood(next)
  mock.timers.tick(60)
  t.equal(open('a').destroyed, true, 'The time begins again with the last flood.')
  // Further requests that were read from the closed connection do not count.
  flood(next)
  mock.timers.tick(39)
  t.equal(open('a').destroyed, true)
  mock.timers.tick(1)
  t.equal(open('a').destroyed, false)
})

t.test('After a flood, other connections are read in the next turn, unless Node has paused them', async t => {
  const { open, flood } = start()
  const [flooding, read, paused] = [open('a'), open('b'), open('b')]
  paused.pause()
  flood(flooding)
  t.strictSame([read.paused, paused.paused], [true, true])
  await nextTurn()
  t.strictSame([read.paused, paused.paused], [false, true])
})

t.test('A turn ends after 20 ms of requests, and the next turn begins with the other network', async t => {
  const clock = setClock(t)
  const { open, resumed } = start()
  const [flooding, older, other] = [open('a'), open('a'), open('b')]
  other.request()
  older.request()
  clock.time += 20
  flooding.request()
  await nextTick()
  t.equal(other.paused, false)
  clock.time++
  flooding.request()
  flooding.request()
  t.equal(other.paused, false, 'Node resumes a connection after a request.')
  await nextTick()
  t.strictSame([older, flooding, other].map(({ paused }) => paused), [true, true, true])
  await nextTurn()
  t.strictSame(resumed, [other, older, flooding])
  // The next turn.
  clock.time += 15
  other.request()
  await nextTick()
  t.equal(other.paused, false)
})

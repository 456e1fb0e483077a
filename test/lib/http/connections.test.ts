import type { Socket } from 'node:net'
import { mock } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'

import { Connections } from '#lib/http/connections.js'
import t from '../../suite.ts'

function start () {
  const connections = new Connections()
  const open = (network: string) => {
    const socket = {
      destroyed: false,
      paused: false,
      destroy () { socket.destroyed = true },
      isPaused: () => socket.paused,
      pause () { socket.paused = true },
      resume () { socket.paused = false },
    }
    connections.set(socket as unknown as Socket, { network, responses: new Set(), bytesRead: 0 })
    return socket
  }
  return { open, flood: (socket: object) => connections.closeFlood(socket as Socket) }
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

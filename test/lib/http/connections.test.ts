import type { Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'

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

t.test('A flood closes its connection, and new ones of its network for a moment', async t => {
  const { open, flood } = start()
  const [flooding, known, other] = [open('a'), open('a'), open('b')]
  flood(flooding)
  flood(flooding)
  t.strictSame([flooding, known, other].map(({ destroyed }) => destroyed), [true, false, false])
  t.strictSame([open('a').destroyed, open('b').destroyed], [true, false])
  while (open('a').destroyed) await sleep(10)
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

import { Socket } from 'node:net'

import { Budget } from '#lib/http/budget.js'
import t from '../../suite.ts'

const LIMIT = 1000

/** A budget, and requests on connections that were never connected. */
function start () {
  const budget = new Budget(LIMIT, { count: 0, bytes: 0 })
  function begin (network: string, own: number, socket = new Socket()) {
    const held = budget.begin(socket, { network })
    budget.hold(held, own)
    return { held, socket }
  }
  return { budget, begin }
}

t.test('Bytes count until the response is taken, or the connection is gone', async t => {
  const { budget, begin } = start()
  const { held, socket } = begin('a', 100)
  begin('a', 50, socket)
  begin('b', 30)
  t.equal(budget.bytes, 180)
  budget.end(socket, held)
  t.equal(budget.bytes, 80)
  const closed = new Promise(resolve => socket.once('close', resolve))
  socket.destroy()
  await closed
  budget.end(socket, held)
  t.equal(budget.bytes, 30)
})

t.test('A body whose client has gone counts against uploads of its network until its answer', async t => {
  const { budget, begin } = start()
  const [answered, abandoned] = [begin('a', 100), begin('a', 800)]
  budget.answer(answered.held, 0)
  for (const { held, socket } of [answered, abandoned]) {
    socket.destroy()
    await new Promise(resolve => socket.once('close', resolve))
    budget.end(socket, held)
  }
  begin('b', 10)
  t.equal(budget.bytes, 10, 'no connection is closed for it')
  t.ok(budget.isFullFor({ network: 'a' }))
  t.notOk(budget.isFullFor({ network: 'b' }))
  budget.answer(abandoned.held, 0)
  t.notOk(budget.isFullFor({ network: 'a' }))
})

t.test('What several requests hold counts once, also while it grows', async t => {
  const { budget, begin } = start()
  const body = { length: 0 }
  const requests = ['a', 'b', 'c'].map(network => begin(network, 0).held)
  function grow (bytes: number) {
    body.length += bytes
    for (const [index, held] of requests.entries()) budget.share(held, body, index === 0 ? bytes : 0)
  }
  grow(0)
  grow(900)
  t.equal(budget.bytes, 900)
  t.equal(budget.closed, 0)
  grow(300)
  t.equal(budget.closed, 3, 'it is only freed with the last of them')
  t.equal(budget.bytes, 0)
})

t.test('Past the limit the heaviest connections of the heaviest network are closed, of equals the oldest', async t => {
  const { budget, begin } = start()
  const honest = begin('honest', 300)
  const small = begin('attacker', 50)
  const first = begin('attacker', 200)
  const second = begin('attacker', 200)
  const third = begin('attacker', 200)
  t.equal(budget.closed, 0)
  const last = begin('attacker', 240)
  t.strictSame([honest, small, first, second, third, last].map(({ socket }) => socket.destroyed),
    [false, false, true, false, false, true].map((gone, n) => n === 2 ? budget.closed > 1 : gone))
  t.ok(budget.bytes <= 0.9 * LIMIT)
})

t.test('When the heaviest network is gone, the next one is looked at', async t => {
  const { budget, begin } = start()
  begin('one', 900)
  begin('two', 950)
  t.strictSame([budget.closed, budget.bytes], [1, 900])
})

t.test('It is counted again only when something has grown', async t => {
  const { budget, begin } = start()
  const { held } = begin('a', 0)
  const body = { length: 2 * LIMIT }
  budget.share(held, body, 60)
  t.equal(budget.closed, 0)
  budget.share(held, body, 3)
  t.equal(budget.closed, 1)
})

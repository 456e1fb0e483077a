import { Socket } from 'node:net'

import { ByteAccount } from '#lib/http/byte-account.js'
import t from '../../suite.ts'

/** Begins a request of this network, with its handler, on a connection, which was never connected. */
function begin (account: ByteAccount, network: string, socket = new Socket()) {
  const holding = account.begin(socket, () => network)
  account.start(holding)
  return { socket, holding }
}

const closed = (socket: Socket) => new Promise(resolve => socket.once('close', resolve))

t.test('Bytes count from when they are held until the response is taken', async t => {
  const account = new ByteAccount(1000)
  const { holding } = begin(account, 'a')
  account.hold(holding, 100)
  account.hold(holding, 50)
  t.equal(account.bytes, 150)
  account.settle(holding)
  t.equal(account.bytes, 150)
  account.release(holding)
  account.release(holding)
  t.equal(account.bytes, 0)
})

t.test('Bytes that several requests hold count once', async t => {
  const account = new ByteAccount(1000)
  const body = { bytes: 100, holders: 0 }
  const [one, other] = [begin(account, 'a').holding, begin(account, 'b').holding]
  account.share(one, body)
  account.share(one, body)
  account.share(other, body)
  t.equal(account.bytes, 100)
  account.grow(body, 50)
  t.equal(account.bytes, 150)
  account.release(one)
  t.equal(account.bytes, 150)
  account.share(other, { bytes: 20, holders: 0 })
  t.equal(account.bytes, 20, 'a request holds one body at a time')
  account.grow(body, 50)
  t.equal(account.bytes, 20, 'no request holds it')
})

t.test('A connection that closes holds no more than what its handlers have', async t => {
  const account = new ByteAccount(1000)
  const { socket, holding } = begin(account, 'a')
  const second = begin(account, 'a', socket).holding
  account.hold(holding, 100)
  account.share(holding, { bytes: 200, holders: 0 })
  account.hold(second, 300)
  account.settle(second)
  socket.destroy()
  await closed(socket)
  t.equal(account.bytes, 100)
  account.share(holding, { bytes: 200, holders: 0 })
  t.equal(account.bytes, 100, 'nothing more')
  account.settle(holding)
  t.equal(account.bytes, 0)
})

t.test('A connection that closes while a body arrives holds nothing', async t => {
  const account = new ByteAccount(1000)
  const socket = new Socket()
  const holding = account.begin(socket, () => 'a')
  account.hold(holding, 100)
  socket.destroy()
  await closed(socket)
  t.equal(account.bytes, 0)
  account.start(holding)
  account.hold(holding, 100)
  account.settle(holding)
  t.equal(account.bytes, 0, 'nor later')
})

t.test('A request whose response is taken holds nothing more', async t => {
  const account = new ByteAccount(1000)
  const { holding } = begin(account, 'a')
  account.release(holding)
  account.hold(holding, 100)
  const body = { bytes: 200, holders: 0 }
  account.share(holding, body)
  account.grow(body, 2000)
  account.settle(holding)
  t.strictSame([account.bytes, body.holders, account.closed], [0, 0, 0])
})

t.test('Past the limit the largest holders of the network that holds the most are closed', async t => {
  const account = new ByteAccount(1000)
  const honest = begin(account, 'honest')
  account.hold(honest.holding, 300)
  const [small, large] = [begin(account, 'attacker'), begin(account, 'attacker')]
  const idle = begin(account, 'idle')
  account.hold(small.holding, 150)
  account.hold(large.holding, 250)
  account.settle(large.holding)
  t.equal(account.closed, 0)
  account.hold(honest.holding, 0)
  account.hold(small.holding, 301)
  t.strictSame([honest, small, large, idle].map(({ socket }) => socket.destroyed), [false, true, false, false])
  t.equal(account.closed, 1)
  t.equal(account.bytes, 1001, 'its handler still has them')
  const late = begin(account, 'late').holding
  account.hold(late, 200)
  t.strictSame([account.closed, account.isFull], [1, false], 'there will be room')
  account.hold(late, 100)
  t.strictSame([account.closed, account.isFull], [1, true])
  account.hold(small.holding, 500)
  account.settle(small.holding)
  t.equal(account.bytes, 850)
})

t.test('Of equal connections that goes which has moved the least', async t => {
  const account = new ByteAccount(1000)
  const [one, other] = [begin(account, 'a'), begin(account, 'a')]
  // The kernel counts them for sockets that are connected.
  Object.defineProperty(one.socket, 'bytesRead', { value: 10 })
  for (const { holding } of [one, other]) {
    account.hold(holding, 500)
    account.settle(holding)
  }
  account.hold(begin(account, 'b').holding, 1)
  t.strictSame([one, other].map(({ socket }) => socket.destroyed), [false, true])
})

t.test('A body that is shared counts by parts', async t => {
  const account = new ByteAccount(1000)
  const body = { bytes: 900, holders: 0 }
  const campus = [1, 2, 3, 4].map(n => begin(account, `campus ${n}`))
  for (const { holding } of campus) account.share(holding, body)
  const other = begin(account, 'other')
  account.hold(other.holding, 500)
  t.ok(other.socket.destroyed)
  t.notOk(campus.some(({ socket }) => socket.destroyed))
})

t.test('With several networks past the limit, one after the other pays', async t => {
  const account = new ByteAccount(1000)
  const body = { bytes: 0, holders: 0 }
  const sharing = ['a', 'b', 'c'].map(network => begin(account, network))
  for (const { holding } of sharing) account.share(holding, body)
  account.grow(body, 2000)
  t.ok(sharing.every(({ socket }) => socket.destroyed))
  t.equal(account.bytes, 0)
  t.notOk(account.isFull)
})

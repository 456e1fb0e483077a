import { spawn } from 'node:child_process'
import { once } from 'node:events'

import t, { type Test } from 'tap'

import { Channel } from '#lib/cluster/channel.js'

/** A process that doubles numbers, fails when it is told to, and sends a request back. */
const OTHER = `
  import { Channel } from '#lib/cluster/channel.js'
  const channel = new Channel(process, { double: number => number * 2, end () { process.exit() } })
  channel.handle('never', () => new Promise(() => {}))
  channel.handle('fail', () => { throw new Error('as told') })
  channel.handle('back', async number => await channel.request('double', number) + 1)
`

function connect (t: Test) {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', OTHER], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  return { child, channel: new Channel(child, { double: async (number: number) => number * 2 }) }
}

t.test('Each end handles requests of the other', async t => {
  const { channel } = connect(t)
  t.strictSame(await Promise.all([1, 2, 3].map(number => channel.request('double', number))), [2, 4, 6])
  t.equal(await channel.request('back', 5), 11)
})

t.test('A request that fails, or for an unknown method, is rejected', async t => {
  const { channel } = connect(t)
  await t.rejects(channel.request('fail'), { message: 'as told' })
  await t.rejects(channel.request('unknown'), { message: /not a function/ })
})

t.test('A request without a response is rejected in time', async t => {
  const { channel } = connect(t)
  await channel.request('double', 1)
  await t.rejects(channel.request('never', undefined, 0.1), { message: 'no answer within 0.1 s' })
})

t.test('Requests to a process that has ended are rejected', async t => {
  const { child, channel } = connect(t)
  const closed = once(child, 'close')
  await t.rejects(channel.request('end'), { message: 'The other process has ended' })
  await closed
  await t.rejects(channel.request('double', 1), { code: 'ERR_IPC_CHANNEL_CLOSED' })
})

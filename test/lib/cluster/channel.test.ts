import { spawn } from 'node:child_process'
import { once } from 'node:events'

import t, { type Test } from 'tap'

import { Channel } from '#lib/cluster/channel.js'

/** A process that doubles numbers, fails when it is told to, and asks back. */
const OTHER = `
  import { Channel } from '#lib/cluster/channel.js'
  const channel = new Channel(process, { double: number => number * 2, end () { process.exit() } })
  channel.answer('never', () => new Promise(() => {}))
  channel.answer('fail', () => { throw new Error('as told') })
  channel.answer('back', async number => await channel.ask('double', number) + 1)
`

function connect (t: Test) {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', OTHER], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  return { child, channel: new Channel(child, { double: async (number: number) => number * 2 }) }
}

t.test('Each end answers the other', async t => {
  const { channel } = connect(t)
  t.strictSame(await Promise.all([1, 2, 3].map(number => channel.ask('double', number))), [2, 4, 6])
  t.equal(await channel.ask('back', 5), 11)
})

t.test('A question that fails, or that nobody knows, is rejected', async t => {
  const { channel } = connect(t)
  await t.rejects(channel.ask('fail'), { message: 'as told' })
  await t.rejects(channel.ask('unknown'), { message: /not a function/ })
})

t.test('A question without an answer is rejected in time', async t => {
  const { channel } = connect(t)
  await channel.ask('double', 1)
  await t.rejects(channel.ask('never', undefined, 0.1), { message: 'no answer within 0.1 s' })
})

t.test('Nobody waits for a process that has ended', async t => {
  const { child, channel } = connect(t)
  const closed = once(child, 'close')
  await t.rejects(channel.ask('end'), { message: 'The other process has ended' })
  await closed
  await t.rejects(channel.ask('double', 1), { code: 'ERR_IPC_CHANNEL_CLOSED' })
})

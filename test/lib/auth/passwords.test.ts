import { availableParallelism } from 'node:os'
import { setImmediate } from 'node:timers/promises'

import argon2 from 'argon2'

import { createPasswordQueue, hashingStats, hashPassword, PLACEHOLDER, verifyPassword } from '#lib/auth/passwords.js'
import t from '../../suite.ts'

const CLIENT = { network: '192.0.2.1', isWanted: () => true }

const PARAMETERS = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/

t.test('A password is hashed with argon2id and a random salt', async t => {
  const [one, other] = await Promise.all([hashPassword('correct horse'), hashPassword('correct horse')])
  t.match(one, PARAMETERS)
  t.match(other, PARAMETERS)
  t.not(one, other)
})

t.test('A hash verifies only its own password', async t => {
  const password = `Correct horse \u{1f40e} ${'x'.repeat(5000)}`
  const hash = await hashPassword(password)
  t.equal(await verifyPassword(hash, password), true)
  for (const wrong of ['', password.toLowerCase(), `${password} `, password.slice(0, -1), PLACEHOLDER, hash]) {
    t.equal(await verifyPassword(hash, wrong), false, wrong.slice(-20))
  }
})

t.test('No password matches the placeholder or a missing hash, and checking takes the usual time', async t => {
  for (const hash of [PLACEHOLDER, undefined]) {
    for (const password of ['', PLACEHOLDER, 'undefined', 'correct horse']) {
      const verifications = t.capture(argon2, 'verify', argon2.verify)
      t.equal(await verifyPassword(hash, password), false, `${hash} and ${JSON.stringify(password)}`)
      verifications.restore()
      const [[against, given] = [], ...others] = verifications.args()
      t.match(against, PARAMETERS)
      t.equal(given, password)
      t.equal(others.length, 0)
    }
  }
})

t.test('One hash runs on each core, and one more waits for a thread', async t => {
  const atOnce = Math.min(availableParallelism(), Number(process.env.UV_THREADPOOL_SIZE) || 4)
  const begun: (() => void)[] = []
  t.intercept(argon2, 'hash', { value: () => new Promise<void>(resolve => { begun.push(resolve) }) })
  const queue = createPasswordQueue()
  const hashes = Array.from({ length: atOnce + 3 }, () => queue.run(CLIENT, () => hashPassword('correct horse')))
  await setImmediate()
  t.equal(begun.length, atOnce + 1)
  t.match(hashingStats(queue), { running: atOnce, waiting: 3 })
  begun[0]!()
  await setImmediate()
  t.equal(begun.length, atOnce + 2)
  t.match(hashingStats(queue), { running: atOnce, waiting: 2 })
  begun[1]!()
  await setImmediate()
  for (const end of begun) end()
  await Promise.all(hashes)
  t.match(hashingStats(queue), { running: 0, waiting: 0 })
})

t.test('A hash that would wait for more than 150 others of its core is rejected with Retry-After', async t => {
  const atOnce = Math.min(availableParallelism(), Number(process.env.UV_THREADPOOL_SIZE) || 4)
  let release!: (hash: string) => void
  const released = new Promise<string>(resolve => { release = resolve })
  t.intercept(argon2, 'hash', { value: () => released })
  const queue = createPasswordQueue()
  const hash = () => queue.run(CLIENT, () => hashPassword('correct horse'))
  const hashes = Array.from({ length: 151 * atOnce }, hash)
  t.match(await hash().catch(error => error), { statusCode: 503, headers: { 'retry-after': 5 } })
  release('a hash')
  t.strictSame(new Set(await Promise.all(hashes)), new Set(['a hash']))
})

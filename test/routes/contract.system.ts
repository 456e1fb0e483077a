// No limit refuses a client that uses an operation of the contract many times in a row.
import { randomUUID } from 'node:crypto'

import { encodeState } from '#lib/auth/oauth-state.js'
import { ACCOUNT } from '../fixtures.ts'
import { bearer, build } from '../helper.ts'
import { createWorld, OPERATIONS, roleFor } from '../operations.ts'
import { CLIENT, startFakeProvider } from '../provider.ts'
import t from '../suite.ts'

/** How often each operation is used one after the other, and then ten at a time. */
const [ALONE, TOGETHER] = [100, 200]
const TIMES = ALONE + TOGETHER

const provider = await startFakeProvider(t)
const app = await build(t, {
  NODE_ENV: 'development',
  DATA_DIR: t.testdir(),
  FRONTEND_URL: 'https://app.example.org',
  IDP_ISSUER: provider.issuer,
  ...CLIENT,
})
const base = await app.listen({ port: 0, host: '127.0.0.1' })
const world = await createWorld(app)

/** Fields that the nth request changes. */
const FIELDS: Record<string, (n: number) => object | Promise<object>> = {
  'POST /auth/register': n => ({ ...ACCOUNT, email: `${n}@example.org` }),
  // The people whom the operation before has registered
  'POST /auth/login': n => ({ email: `${n}@example.org`, password: ACCOUNT.password }),
  'POST /auth/google': async n =>
    ({ idToken: await provider.idToken({ sub: randomUUID(), email: `provider${n}@example.org` }) }),
  'POST /clubs': n => ({ name: `Club ${n}` }),
}

const state = encodeState({ n: 'nonce', r: '/' })
/** The additions to the contract are limited. */
const contract = Object.entries(OPERATIONS)
  .filter(([name]) => / \/(auth|blogs|clubs|events|mentors|testimonials|users)\b/.test(name))
t.equal(contract.length, 43)

for (const [name, operation] of contract) {
  t.test(`${name} succeeds ${TIMES} times from one address`, async t => {
    const [method, path] = name.split(' ') as [string, string]
    const role = roleFor(operation)
    const seen: Record<number, number> = {}
    async function send (n: number) {
      // Its people exist, and another account would take as long as the sign-in.
      const { id = 'x', body } = name === 'POST /auth/login' ? {} : await operation.given?.(world) ?? {}
      const payload = { ...operation.body, ...body, ...await FIELDS[name]?.(n) }
      const hasBody = Object.keys(payload).length > 0
      const query = name === 'GET /auth/google/callback' ? `?code=x&state=${state}` : ''
      const response = await fetch(base + path.replace(/:\w+/, id) + query, {
        method,
        redirect: 'manual',
        headers: {
          cookie: 'oauth_state_nonce=nonce',
          ...role && bearer(world.people[role].token),
          ...hasBody && { 'content-type': 'application/json' },
        },
        ...hasBody && { body: JSON.stringify(payload) },
      })
      await response.arrayBuffer()
      seen[response.status] = (seen[response.status] ?? 0) + 1
    }
    for (let n = 0; n < ALONE; n++) await send(n)
    for (let n = ALONE; n < TIMES; n += 10) await Promise.all(Array.from({ length: 10 }, (_, i) => send(n + i)))
    const [status, ...others] = Object.keys(seen).map(Number)
    t.strictSame(others, [])
    // The contract has no success for this operation.
    if (name === 'DELETE /users/:userId/club') t.equal(status, 400)
    else t.ok(status! < 400, String(status))
  })
}

// Input of operations: the values of each field, unknown and empty ids, and tokens without a user.
import { randomUUID } from 'node:crypto'

import type { FastifyJWT } from '@fastify/jwt'

import { assertInvalid, assertResponse, shown, unknownPaths } from '../assertions.ts'
import { allRows, bearer, build, inject, insert, person } from '../helper.ts'
import { createWorld, OPERATIONS, type Operation, pathWith, roleFor } from '../operations.ts'
import t from '../suite.ts'

const app = await build(t)
const world = await createWorld(app)

type Fields = Record<string, unknown>

/** Fields whose value a response does not show, or shows differently. */
const NOT_SHOWN = ['password', 'data', 'newRole', 'dates', 'ends', 'message']

/** These ids have tests of their own. */
const EXEMPT = [
  'DELETE /users/:userId/club', 'GET /feeds/me/:token.ics', 'POST /account/unsubscribe/:token',
  'POST /agenda/:id/message', 'POST /me/events/:id/message',
]

/** The rows that an operation needs, and a function that sends a request of an authorized user. */
async function prepare (name: string, operation: Operation) {
  const [method, path] = name.split(' ') as ['GET' | 'POST' | 'PUT' | 'DELETE', string]
  const { id = '', body: more } = await operation.given?.(world) ?? {}
  const role = roleFor(operation)
  const own = { ...operation.body, ...more } as Fields
  return {
    id,
    parameter: /:(\w+)/.exec(path)?.[1] ?? '',
    body: () => name === 'POST /auth/register' ? { ...own, email: `${randomUUID()}@example.org` } : own,
    send: (body?: Fields, headers?: Record<string, string>, to = id) => inject(app, method, pathWith(path, to),
      method === 'GET' ? undefined : body, headers ?? (role && bearer(world.people[role].token))),
  }
}

for (const [name, operation] of Object.entries(OPERATIONS)) {
  const { fields = {}, required = [], unknown, empty, failure, ownClub, gone, nameless } = operation

  for (const [field, { takes, refuses }] of Object.entries(fields)) {
    t.test(`${name} takes and refuses values of ${field}`, async t => {
      const { body, send } = await prepare(name, operation)
      const others = () => name.startsWith('PUT') ? {} : body()
      for (const value of takes.map(value => typeof value === 'function' ? value() : value)) {
        const response = await send({ ...others(), [field]: value })
        t.ok(response.statusCode < 300, `${shown(value)}: ${response.statusCode}`)
        if (NOT_SHOWN.includes(field)) continue
        t.ok(response.body.includes(`"${field}":${JSON.stringify(value)}`), shown(value))
      }
      const before = await allRows(app)
      for (const value of refuses) assertInvalid(t, await send({ ...others(), [field]: value }), [field], shown(value))
      if (required.includes(field)) assertInvalid(t, await send({ ...body(), [field]: undefined }), [field], 'none')
      t.strictSame(await allRows(app), before, 'nothing is stored')
    })
  }

  if (Object.keys(fields).length > 1) {
    t.test(`${name} reports every issue`, async t => {
      const { send } = await prepare(name, operation)
      const wrong = Object.fromEntries(Object.entries(fields).map(([field, { refuses }]) => [field, refuses.at(-1)]))
      assertInvalid(t, await send(wrong), Object.keys(fields))
      if (required.length > 0) assertInvalid(t, await send({}), required)
    })
  }

  if (name.includes(':') && !EXEMPT.includes(name)) {
    t.test(`${name} returns ${unknown ? 404 : 'its failure'} for an unknown id`, async t => {
      const { id, parameter, body, send } = await prepare(name, operation)
      const before = await allRows(app)
      for (const path of unknownPaths(id)) {
        assertResponse(t, await send(body(), undefined, path), unknown ? 404 : 500,
          { message: unknown ?? failure }, path.slice(0, 60))
      }
      for (const [field, { refuses }] of Object.entries(fields).slice(0, 1)) {
        assertInvalid(t, await send({ [field]: refuses[0] }, undefined, randomUUID()), [field], 'validated before')
      }
      const response = await send(body(), undefined, name.endsWith(parameter) ? '/' : '')
      if (empty) assertResponse(t, response, empty[0], { message: empty[1] }, 'an empty id')
      // `GET /blogs/` is the list.
      else if (name !== 'GET /blogs/:id') assertInvalid(t, response, [parameter], 'an empty id')
      t.strictSame(await allRows(app), before, 'nothing changes')
      t.ok((await send(body())).statusCode < 300, 'the id itself is known')
    })
  }

  if (ownClub) {
    t.test(`${name} is for the head of the current club of the event, and for admins`, async t => {
      const elsewhere = { club_id: await insert(app, 'clubs') }
      const heads = [
        await person(app, 'CLUB_HEAD', elsewhere), await person(app, 'CLUB_HEAD'), await person(app, 'CLUB_HEAD'),
      ]
      await app.sql`DELETE FROM users WHERE id = ${heads[2]!.id}`
      const { body, send } = await prepare(name, operation)
      const before = await allRows(app)
      for (const { token } of heads) {
        assertResponse(t, await send(body(), bearer(token)), 403, { message: ownClub })
      }
      t.strictSame(await allRows(app), before, 'nothing changes')
      await app.sql`UPDATE users SET club_id = ${world.club} WHERE id = ${heads[0]!.id}`
      for (const { token } of [heads[0]!, await person(app, 'ADMIN'), await person(app, 'ADMIN', elsewhere)]) {
        const { body, send } = await prepare(name, operation)
        t.ok((await send(body(), bearer(token))).statusCode < 300)
      }
    })
  }

  for (const [who, expected] of [['a user who was deleted', gone], ['a token without a user id', nameless]] as const) {
    if (!expected) continue
    const [status, answer] = expected
    t.test(`${name} returns ${status} to ${who}`, async t => {
      const { body, send } = await prepare(name, operation)
      const role = roleFor(operation)!
      const someone = await person(app, role)
      await app.sql`DELETE FROM users WHERE id = ${someone.id}`
      const token = expected === gone ? someone.token : app.jwt.sign({ role } as FastifyJWT['payload'])
      const before = await allRows(app)
      assertResponse(t, await send(body(), bearer(token)), status,
        typeof answer === 'string' ? { message: answer } : answer)
      t.strictSame(await allRows(app), before, 'nothing changes')
    })
  }
}

// Clients choose which fields and parameters they send, and how long their lists are. The statements do not depend on
// that: the driver prepares each text, and each combination of types of its parameters, on each connection, and
// PostgreSQL keeps it until the connection closes.
import type { RouteOptions } from 'fastify'
import type { TSchema } from '@sinclair/typebox'

import { writeEmails } from '#lib/email/batches.js'
import { bearer, buildWithRoutes, inject, nameOf, person } from '../helper.ts'
import { createWorld, type Operation, OPERATIONS, pathWith, roleFor } from '../operations.ts'
import t from '../suite.ts'

// `pg_prepared_statements` shows the statements of its own connection.
const { app, routes } = await buildWithRoutes(t, { DATABASE_POOL_SIZE: '1' })
const world = await createWorld(app)

/** The statements that an operation may add for all requests after the first one, for example in its branches. */
const MOST = 16

/** The number of requests of each operation. */
const REQUESTS = 64

/** The longest list. */
const LONGEST = 20

/** Not tested: one sends an endless response with lists of other operations, and one does not use the database. */
const EXEMPT = ['GET /live', 'GET /auth/google/start']

const countStatements = async () => {
  const [{ count }] = await app.sql<[{ count: number }]>`SELECT count(*)::int FROM pg_prepared_statements`
  return count
}

/** A field of a body, or a parameter of a query. */
interface Field {
  path: string[]
  isOptional: boolean
  isNullable: boolean
  isList: boolean
  value: unknown
}

type Values = Record<string, any>

/** The fields of a schema, also of objects within it. */
function fieldsOf (schema: TSchema, known: Values, { fields = {} }: Operation, path: string[] = []): Field[] {
  return Object.entries<TSchema>(schema.properties ?? {}).flatMap(([name, property]) => {
    if (property.properties) return fieldsOf(property, known[name] ?? {}, {} as Operation, [...path, name])
    const types = [property.type].flat()
    const [taken] = fields[name]?.takes ?? []
    const [example] = [...property.examples ?? [], ...property.enum ?? []]
    return {
      path: [...path, name],
      isOptional: !schema.required?.includes(name),
      isNullable: types.includes('null'),
      isList: types.includes('array') && property.type !== 'array',
      value: known[name] ?? (typeof taken === 'function' ? taken() : taken) ?? example,
    }
  })
}

/** An object with these fields. In every second one, fields that can be null are null. The lengths of lists differ. */
function objectOf (fields: Field[], number: number) {
  const object: Values = {}
  for (const { path, isNullable, isList, value } of fields) {
    let parent = object
    for (const name of path.slice(0, -1)) parent = parent[name] ??= {}
    const given = isList ? Array(number % LONGEST + 1).fill(value) : value
    parent[path.at(-1)!] = isNullable && number % 2 === 1 ? null : given
  }
  return object
}

/** Different subsets of the optional fields, with all required fields: all subsets, or evenly spread ones. */
function subsetsOf (fields: Field[]) {
  const optional = fields.filter(({ isOptional }) => isOptional)
  const count = 2 ** optional.length
  // Of an odd step, all bits change.
  const step = Math.floor(count / REQUESTS) | 1
  return Array.from({ length: Math.ceil(count / step) }, (_, number) => fields.filter(field =>
    !field.isOptional || ((number * step) >> optional.indexOf(field)) % 2 === 1))
}

/** The fields that clients can send to a route. */
function inputOf ({ schema = {} }: RouteOptions, operation: Operation, body: Values) {
  const { querystring, body: bodySchema, checkedByHandler } = schema as Record<string, any>
  return {
    parameters: fieldsOf(querystring ?? checkedByHandler?.querystring ?? {}, {}, {} as Operation),
    fields: fieldsOf(bodySchema ?? checkedByHandler?.body ?? {}, body, operation),
  }
}

for (const route of routes) {
  const name = nameOf(route)
  const operation = OPERATIONS[name]
  if (!operation || EXEMPT.includes(name)) continue
  const { parameters, fields } = inputOf(route, operation, {})
  if (![...parameters, ...fields].some(({ isOptional }) => isOptional)) continue

  t.test(`${name} has few statements for all subsets of its input`, async t => {
    const [method, path] = name.split(' ') as ['GET' | 'PUT' | 'POST' | 'DELETE', string]
    const { id = '', body: more } = await operation.given?.(world) ?? {}
    const { parameters, fields } = inputOf(route, operation, { ...operation.body, ...more })
    const role = roleFor(operation)
    const send = (parameters: Field[], fields: Field[], number: number) => {
      const query = Object.entries(objectOf(parameters, number))
        .flatMap(([name, value]) => [value].flat().map(value => `${name}=${encodeURIComponent(value)}`))
      return inject(app, method, `${pathWith(path, id)}?${query.join('&')}`,
        method === 'GET' ? undefined : objectOf(fields, number), role && bearer(world.people[role].token))
    }
    const responses = [await send(parameters, fields, 0)]
    const before = await countStatements()
    for (const [number, subset] of subsetsOf(parameters).entries()) responses.push(await send(subset, fields, number))
    for (const [number, subset] of subsetsOf(fields).entries()) responses.push(await send(parameters, subset, number))
    t.ok(responses.some(({ statusCode }) => statusCode < 300), 'a request succeeds')
    const added = await countStatements() - before
    t.ok(added <= MOST, `${added} more statements than for the first request`)
  })
}

t.test('Any number of copies has the same statements', async t => {
  const { id } = await OPERATIONS['POST /agenda/:id/copies']!.given!(world)
  const copy = async (copies: number) => {
    const dates = Array.from({ length: copies }, (_, day) => new Date(Date.UTC(2030, 1, day + 1)))
    const { statusCode } = await world.people.ADMIN.inject('POST', `/agenda/${id}/copies`, { dates })
    t.equal(statusCode, 201)
  }
  await copy(1)
  const before = await countStatements()
  for (let copies = 2; copies <= LONGEST; copies++) await copy(copies)
  t.equal(await countStatements(), before)
})

t.test('Any number of email batches has the same statements', async t => {
  const { id } = await person(app, 'STUDENT', { email_verified_at: new Date() })
  const write = async (batches: number) => {
    await app.sql`DELETE FROM email_batches`
    await app.sql`DELETE FROM emails`
    await app.sql`
      INSERT INTO email_batches (template, key, data, user_ids, due_at)
      SELECT 'event-message', n, '{}', ARRAY[${id}::uuid], now() - interval '1 s'
      FROM generate_series(1, ${batches}::int) AS n
    `
    await writeEmails(app.sql)
    const [{ count }] = await app.sql<[{ count: number }]>`SELECT count(*)::int FROM emails`
    t.equal(count, batches)
  }
  await write(1)
  const before = await countStatements()
  for (let batches = 2; batches <= LONGEST; batches++) await write(batches)
  t.equal(await countStatements(), before)
})

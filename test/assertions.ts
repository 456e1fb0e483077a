import { randomUUID } from 'node:crypto'

import type { LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'

/** How responses write a time. */
export const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** The response has this status and exactly this JSON body. */
export function assertResponse (t: Test, response: LightMyRequestResponse, status: number, body: unknown, name = '') {
  const { statusCode, headers } = response
  t.strictSame([statusCode, headers['content-type'], response.json()],
    [status, 'application/json; charset=utf-8', body], name)
}

/** The response has this status and this message, and nothing else. */
export function assertMessage (t: Test, response: LightMyRequestResponse, status: number, message: string, name = '') {
  assertResponse(t, response, status, { message }, name)
}

/** The response is the validation error, with one issue for each of these paths. */
export function assertInvalid (t: Test, response: LightMyRequestResponse, paths: readonly string[], name = '') {
  const { errors = [], ...body } = response.json()
  t.strictSame([response.statusCode, body], [400, { message: 'Validation error' }], name)
  const issues = errors.map((issue: { message: string }) => ({ ...issue, message: typeof issue.message }))
  const byPath = (a: { path: string }, b: { path: string }) => a.path < b.path ? -1 : 1
  t.strictSame(issues.sort(byPath), paths.map(path => ({ path, message: 'string' })).sort(byPath), name)
}

/** Texts that are the id of nothing, although something has this id. */
export const unknownIds = (id: string) => [
  randomUUID(), '00000000-0000-0000-0000-000000000000', 'not-a-uuid', '0', 'null', 'undefined', '__proto__',
  id.toUpperCase(), id.replaceAll('-', ''), `${id}x`, `${id} `, ` ${id}`, `{${id}}`,
  ' ', 'a/b', '../..', '\' OR 1=1', '\';--', '😀', 'x'.repeat(10_000),
]

/** The same for a path, where NUL may stand too. */
export const unknownPaths = (id: string) => [...unknownIds(id), '\0', `${id}\0`].map(encodeURIComponent)

/** A value, short enough to name a test. */
export const shown = (value: unknown) => `${JSON.stringify(value)}`.slice(0, 40)

import { randomUUID } from 'node:crypto'

import type { LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'

/** A timestamp in a response. */
export const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Asserts that the response has this status and exactly this JSON body. */
export function assertResponse (t: Test, response: LightMyRequestResponse, status: number, body: unknown, name = '') {
  const { statusCode, headers } = response
  t.strictSame([statusCode, headers['content-type'], response.json()],
    [status, 'application/json; charset=utf-8', body], name)
}

/** Asserts that the response consists of this status and message. */
export function assertMessage (t: Test, response: LightMyRequestResponse, status: number, message: string, name = '') {
  assertResponse(t, response, status, { message }, name)
}

/** Asserts that the response is the validation error, with one issue for each path, and that no issue quotes input. */
export function assertInvalid (t: Test, response: LightMyRequestResponse, paths: readonly string[], name = '') {
  const { errors = [], ...body } = response.json()
  t.strictSame([response.statusCode, body], [400, { message: 'Validation error' }], name)
  const issues = errors.map((issue: { message: unknown }) =>
    ({ ...issue, message: /^[\w ,<>=]+$/.test(String(issue.message)) ? 'plain' : issue.message }))
  const byPath = (a: { path: string }, b: { path: string }) => a.path < b.path ? -1 : 1
  t.strictSame(issues.sort(byPath), paths.map(path => ({ path, message: 'plain' })).sort(byPath), name)
}

/** Asserts that a list has exactly these entries. `where` names the list, to help developers add an entry. */
export function assertComplete (t: Test, entries: readonly string[], expected: readonly string[], where: string) {
  const missing = expected.filter(entry => !entries.includes(entry))
  t.strictSame(missing, [], `add what is missing to ${where}`)
  t.strictSame(entries.filter(entry => !expected.includes(entry)), [], `remove what there is not from ${where}`)
}

/** Unknown ids: strings that resemble an id, and hostile strings. */
export const unknownIds = (id: string) => [
  randomUUID(), '00000000-0000-0000-0000-000000000000', 'not-a-uuid', '0', 'null', 'undefined', '__proto__',
  id.toUpperCase(), id.replaceAll('-', ''), `${id}x`, `${id} `, ` ${id}`, `{${id}}`,
  ' ', 'a/b', '../..', '\' OR 1=1', '\';--', '😀', 'x'.repeat(10_000),
]

/** The same, encoded for a path, and with NUL. */
export const unknownPaths = (id: string) => [...unknownIds(id), '\0', `${id}\0`].map(encodeURIComponent)

/** A value, shortened for the name of an assertion. */
export const shown = (value: unknown) => `${JSON.stringify(value)}`.slice(0, 40)

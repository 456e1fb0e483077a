import type { LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'

/** The answer is this status with exactly this body. */
export function answers (t: Test, response: LightMyRequestResponse, status: number, body: unknown, name = '') {
  t.strictSame([response.statusCode, response.json()], [status, body], name)
}

/** The answer is the validation error, with one issue for each of these paths. */
export function invalid (t: Test, response: LightMyRequestResponse, paths: string[], name = '') {
  const { errors, ...body } = response.json()
  const issues = errors?.map((issue: { message: string }) => ({ ...issue, message: typeof issue.message }))
  t.strictSame([response.statusCode, body], [400, { message: 'Validation error' }], name)
  t.strictSame(
    issues?.sort((a: { path: string }, b: { path: string }) => a.path < b.path ? -1 : 1),
    paths.sort().map(path => ({ path, message: 'string' })), name
  )
}

/** A value short enough to name a test. */
export const shown = (value: unknown) => `${JSON.stringify(value)}`.slice(0, 40)

import { stat } from 'node:fs/promises'

import { createConfig, lint } from '@redocly/openapi-core'

import t from './suite.ts'

/** Operations without a 2xx response: two redirect, one has only errors in the contract. */
const WITHOUT_SUCCESS = [
  '#/paths/~1auth~1google~1callback/get/responses',
  '#/paths/~1auth~1google~1start/get/responses',
  '#/paths/~1users~1{userId}~1club/delete/responses',
]

t.test('openapi.json satisfies the ruleset recommended-strict of Redocly', async t => {
  const config = await createConfig({ extends: ['recommended-strict'] })
  const problems = (await lint({ ref: 'openapi.json', config }))
    .map(({ ruleId, message, location }) => ({ ruleId, message, pointer: location[0]?.pointer }))
  t.strictSame(problems, WITHOUT_SUCCESS.map(pointer => ({
    ruleId: 'operation-2xx-response', message: 'Operation must have at least one `2XX` response.', pointer,
  })))
})

t.test('openapi.json says each error once', async t => {
  t.ok((await stat('openapi.json')).size <= 360_000)
})

import { readFile, stat } from 'node:fs/promises'

import { createConfig, lint } from '@redocly/openapi-core'

import t from './suite.ts'

/** Operations without a 2xx response, because they redirect. */
const WITHOUT_SUCCESS = [
  '#/paths/~1auth~1google~1callback/get/responses',
  '#/paths/~1auth~1google~1start/get/responses',
]

t.test('openapi.json satisfies the ruleset recommended-strict of Redocly', async t => {
  const config = await createConfig({ extends: ['recommended-strict'] })
  const problems = (await lint({ ref: 'openapi.json', config }))
    .map(({ ruleId, message, location }) => ({ ruleId, message, pointer: location[0]?.pointer }))
  t.strictSame(problems, WITHOUT_SUCCESS.map(pointer => ({
    ruleId: 'operation-2xx-response', message: 'Operation must have at least one `2XX` response.', pointer,
  })))
})

t.test('openapi.json stays small, because frequent schemas have a name', async t => {
  const { paths } = JSON.parse(await readFile('openapi.json', 'utf8')) as { paths: Record<string, object> }
  const operations = Object.values(paths).flatMap(path => Object.keys(path)).length
  const { size } = await stat('openapi.json')
  t.ok(size / operations < 4300, `${size} bytes for ${operations} operations: give repeated schemas a title`)
})

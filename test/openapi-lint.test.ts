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

t.test('openapi.json says each error once', async t => {
  const { paths } = JSON.parse(await readFile('openapi.json', 'utf8')) as {
    paths: Record<string, Record<string, { responses?: Record<string, object> }>>
  }
  const responses = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, operation]) =>
      Object.entries(operation.responses ?? {}).map(([status, response]) => ({
        place: `${method} ${path} ${status}`, text: JSON.stringify(response),
      }))))
  const errors = responses.filter(({ place, text }) => / [45]..$/.test(place) && !text.includes('$ref'))
  const repeated = errors.filter(({ text }) => errors.filter(other => other.text === text).length > 1)
  t.strictSame(repeated.map(({ place }) => place), [], 'lib/api-document.ts makes a component of each of them')
  const operations = Object.values(paths).flatMap(path => Object.keys(path)).length
  const { size } = await stat('openapi.json')
  t.ok(size / operations < 5300, `${size} bytes for ${operations} operations: give repeated schemas a title`)
})

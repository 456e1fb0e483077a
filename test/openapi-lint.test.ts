import { readFile, stat } from 'node:fs/promises'

import { createConfig, lint } from '@redocly/openapi-core'

import t from './suite.ts'

t.test('openapi.json satisfies the ruleset recommended-strict of Redocly', async t => {
  const config = await createConfig({ extends: ['recommended-strict'] })
  const problems = (await lint({ ref: 'openapi.json', config }))
    .map(({ ruleId, message, location, ignored = false }) =>
      ({ ruleId, message, pointer: location[0]?.pointer, ignored }))
  t.strictSame(problems.filter(({ ignored }) => !ignored), [])
  t.equal(problems.length, 2, '.redocly.lint-ignore.yaml lists only these problems, so no entry is outdated')
})

t.test('openapi.json stays small, because frequent schemas have a name', async t => {
  const { paths } = JSON.parse(await readFile('openapi.json', 'utf8')) as { paths: Record<string, object> }
  const operations = Object.values(paths).flatMap(path => Object.keys(path)).length
  const { size } = await stat('openapi.json')
  t.ok(size / operations < 3400, `${size} bytes for ${operations} operations: give repeated schemas a title`)
})

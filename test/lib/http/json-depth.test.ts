import { isDeeperThan } from '#lib/http/json-depth.js'
import t from '../../suite.ts'

t.test('The commas between values count, and not those in texts', t => {
  const json = Buffer.from('{"a": [1, 2, ","], "b": ",,,,"}')
  t.equal(isDeeperThan(json, 9, 3), false)
  t.equal(isDeeperThan(json, 9, 2), true)
  t.end()
})

t.test('The depth of a JSON text is the depth of its deepest object or array', async t => {
  const cases: [json: string, depth: number][] = [
    ['', 0],
    ['7', 0],
    ['"[[[["', 0],
    ['{}', 1],
    ['[{}, [], {}]', 2],
    ['{"a": [{"b": 1}], "c": {}}', 3],
    ['{"}": "]\\"]", "a": ["[", "\\\\", [1]]}', 3],
    ['["é [ \u2603 [ \u{1f600} [", []]', 2],
    ['["unfinished [[[', 1],
    ['["unfinished \\', 1],
    ['["line \n[", []]', 2],
    ['[[[', 3],
    [']]]', 0],
    [`${'['.repeat(1000)}${']'.repeat(1000)}`, 1000],
  ]
  for (const [json, depth] of cases) {
    t.equal(isDeeperThan(Buffer.from(json), depth), false, `${json.slice(0, 30)} is ${depth} deep`)
    if (depth === 0) continue
    t.equal(isDeeperThan(Buffer.from(json), depth - 1), true, `${json.slice(0, 30)} is deeper than ${depth - 1}`)
  }
})

import { measureJson } from '#lib/http/json-size.js'
import t from '../../suite.ts'

t.test('The commas between values count, and not those in texts', t => {
  t.equal(measureJson(Buffer.from('{"a": [1, 2, ","], "b": ",,,,"}')).commas, 3)
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
  for (const [json, depth] of cases) t.equal(measureJson(Buffer.from(json)).depth, depth, json.slice(0, 30))
})

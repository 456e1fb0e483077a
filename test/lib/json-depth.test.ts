import t from 'tap'

import { depthOf } from '#lib/json-depth.js'

t.test('the depth of a JSON text is that of its deepest object or array', async t => {
  const cases: [json: string, depth: number][] = [
    ['', 0],
    ['7', 0],
    ['"[[[["', 0],
    ['{}', 1],
    ['[{}, [], {}]', 2],
    ['{"a": [{"b": 1}], "c": {}}', 3],
    ['{"}": "]\\"]", "a": ["[", "\\\\", [1]]}', 3],
    ['["unfinished [[[', 1],
    ['["line \n[", []]', 2],
    ['[[[', 3],
    [']]]', 0],
    [`${'['.repeat(1000)}${']'.repeat(1000)}`, 1000],
  ]
  for (const [json, depth] of cases) t.equal(depthOf(json), depth, json.slice(0, 30))
})

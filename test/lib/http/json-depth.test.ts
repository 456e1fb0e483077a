import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

import { isDeeperThan } from '#lib/http/json-depth.js'
import t from '../../suite.ts'

t.test('The depth of a JSON text is that of its deepest object or array', async t => {
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

t.test('Checking the depth takes at most twice as long as parsing a string of the same length', async t => {
  // In a child process: here, coverage and a cold JIT would distort the ratio.
  const program = `
    const { isDeeperThan } = await import(${JSON.stringify(import.meta.resolve('#lib/http/json-depth.js'))})
    const texts = {
      'open brackets': '['.repeat(1 << 20),
      'open and closed brackets': '[],'.repeat((1 << 20) / 3),
      'closing brackets': '}'.repeat(1 << 20),
      'a string': '"' + 'x'.repeat(1 << 20),
      'short strings': '"",'.repeat((1 << 20) / 3),
      'escaped quotes': '"' + '\\\\"'.repeat((1 << 20) / 2),
      'names and values': '{"a":{"b":[1]}},'.repeat((1 << 20) / 16),
    }
    const string = Buffer.from(JSON.stringify('x'.repeat(1 << 20)))
    const parse = () => JSON.parse(string.toString())
    const time = run => {
      const start = performance.now()
      run()
      return performance.now() - start
    }
    const times = Object.entries(texts).map(([name, text]) => [name, Buffer.from(text), Infinity, Infinity])
    for (let round = 0; round < 30; round++) {
      for (const row of times) {
        row[2] = Math.min(row[2], time(() => isDeeperThan(row[1], 32)))
        row[3] = Math.min(row[3], time(parse))
      }
    }
    console.log(JSON.stringify(times.map(([name, , checked, parsed]) => [name, checked / parsed])))
  `
  const node = [process.execPath, '--input-type=module', '--eval', program]
  const { stdout } = await promisify(execFile)('env', ['-u', 'NODE_OPTIONS', ...node])
  const ratios: [string, number][] = JSON.parse(stdout)
  t.equal(ratios.length, 7)
  for (const [name, ratio] of ratios) t.ok(ratio <= 2, `${name}: ${ratio.toFixed(2)}`)
})

// An export with attacks in its cells, as Python's csv reads it: by comma, and as spreadsheets of some countries do, by
// semicolon or tab.
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

import fc from 'fast-check'

import { toCsv } from '#lib/values/csv.js'
import { findVersion, type Judge, run } from './judge.ts'

const ROWS = 20_000

/** Prints for each separator how many rows there are, and which cells begin a formula. */
const READER = `
import csv, json, sys
for separator in [',', ';', '\\t']:
    with open(sys.argv[1], newline='', encoding='utf-8-sig') as file:
        rows = list(csv.reader(file, delimiter=separator))
    formulas = [cell for row in rows for cell in row if cell.strip().strip('"').strip()[:1] in tuple('=+-@')]
    print(json.dumps({ 'separator': separator, 'rows': len(rows), 'formulas': formulas[:3] }))
`

const name = fc.array(
  fc.constantFrom('=HYPERLINK(A1)', '+1', '-1', '@A1', '"', '""', '\'', ';', ',', '\t', '\r', '\n', '\r\n', ' ', 'Ada'),
  { maxLength: 8 }
).map(parts => parts.join(''))

/** Writes random names, and expects a row for each and no formula. */
export const csv: Judge = {
  program: 'python3',
  install: 'apt-get install python3',
  version: async setting => findVersion((await run(setting, 'python3', ['--version'])).stdout),

  async run (setting) {
    const file = join(setting.directory, 'users.csv')
    const rows = fc.sample(fc.record({ email: name, firstName: name, lastName: name }), ROWS)
    async function * read () { yield * rows }
    const columns = { email: 'email', firstName: 'firstName', lastName: 'lastName' }
    await pipeline(toCsv(read(), columns), createWriteStream(file))
    const { stdout, output } = await run(setting, 'python3', ['-c', READER, file])
    const lines = stdout.trim().split('\n')
    const findings = [',', ';', '\t']
      .map(separator => JSON.stringify({ separator, rows: ROWS + 1, formulas: [] }))
      .flatMap((line, n) => JSON.stringify(JSON.parse(lines[n] || 'null')) === line ? [] : [lines[n] ?? output])
    return { subject: `${ROWS} rows of attacks, by comma, semicolon and tab`, findings }
  },
}

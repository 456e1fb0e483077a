import { execFile } from 'node:child_process'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import postgres, { type Sql } from 'postgres'
import t, { type Test } from 'tap'

import databaseCommand from '#lib/cli/database.js'
import { commandsOf } from '../../documents.ts'
import { createDatabase } from '../../helper.ts'
import { call, dataDir, postgresOf, start } from '../../process.ts'

const database = (variables: NodeJS.Dict<string>, ...args: string[]) => call(databaseCommand, variables, { args })

t.test('url prints the address', async t => {
  const DATABASE_URL = await createDatabase()
  t.strictSame(await database({ DATABASE_URL }, 'url'), {
    code: 0, signal: null, stdout: `${DATABASE_URL}\n`, stderr: '',
  })
})

/** Runs the embedded database until Ctrl-C, and a statement on it. */
async function hold (t: Test, DATA_DIR: string, statement: (sql: Sql) => Promise<unknown>) {
  const args = ['database', 'url', '--hold']
  const { child, output, ended } = start(t, 'dist/lib/cli.js', { DATA_DIR }, { args, covered: true })
  while (!output.stdout.includes('\n')) await sleep(20)
  const sql = postgres(output.stdout.trim(), { max: 1 })
  const result = await statement(sql)
  await sql.end()
  child.kill('SIGINT')
  t.equal((await ended).code, 0)
  t.strictSame(await postgresOf(DATA_DIR), [])
  return result
}

t.test('url --hold runs the embedded database, and a copy of its stopped folder restores it', async t => {
  const DATA_DIR = dataDir(t)
  const [copy = '', restore = ''] = (await commandsOf('docs/run/operate.md', 'Copy the embedded database'))
    .map(text => text.replaceAll('.data', DATA_DIR).replaceAll('../community-backup', `${DATA_DIR}-backup`))
  const shell = (script: string) => promisify(execFile)('bash', ['-ec', script], { cwd: dirname(DATA_DIR) })
  t.teardown(() => shell(`rm -rf ${DATA_DIR}-backup`))

  await hold(t, DATA_DIR, sql => sql`CREATE TABLE kept AS SELECT 1 AS value`)
  await shell(copy)
  await hold(t, DATA_DIR, sql => sql`DROP TABLE kept`)
  await shell(restore)
  const rows = await hold(t, DATA_DIR, sql => sql`SELECT value FROM kept`) as object[]
  t.match(rows, [{ value: 1 }])
})

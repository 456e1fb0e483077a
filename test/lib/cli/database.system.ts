import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'
import t from 'tap'

import databaseCommand from '#lib/cli/database.js'
import { createDatabase } from '../../helper.ts'
import { call, dataDir, postgresOf, start } from '../../process.ts'

const database = (variables: NodeJS.Dict<string>, ...args: string[]) => call(databaseCommand, variables, { args })

t.test('url prints the address', async t => {
  const DATABASE_URL = await createDatabase(t)
  t.strictSame(await database({ DATABASE_URL }, 'url'), {
    code: 0, signal: null, stdout: `${DATABASE_URL}\n`, stderr: '',
  })
})

t.test('url --hold runs the embedded database until Ctrl-C', async t => {
  const DATA_DIR = dataDir(t)
  const args = ['database', 'url', '--hold']
  const { child, output, ended } = start(t, 'dist/lib/cli.js', { DATA_DIR }, { args, covered: true })
  while (!output.stdout.includes('\n')) await sleep(20)
  const sql = postgres(output.stdout.trim(), { max: 1 })
  t.strictSame([...await sql`SELECT current_database()`], [{ current_database: 'postgres' }])
  await sql.end()
  child.kill('SIGINT')
  t.equal((await ended).code, 0)
  t.strictSame(await postgresOf(DATA_DIR), [])
})

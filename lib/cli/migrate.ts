import { relative } from 'node:path'

import { createMigration, migrate, migrationStatus } from '../database/migrations.ts'
import { onDatabase, OPERAND, parseCommandLine, UsageError } from './command-line.ts'

const USAGE = `Usage: npm run migrate [-- COMMAND [--json]]

  up             apply pending migrations (default)
  down [COUNT]   revert the last migration, or the last COUNT migrations
  status         list applied and pending migrations
  create NAME    create an empty migration in migrations/

You can run it while the service runs. --json prints JSON for programs (up, down and status).

The database is DATABASE_URL or, if unset, the embedded database in DATA_DIR.`

/** `npm run migrate`: applies, reverts, lists and creates migrations. */
export default async function migrateCommand (args: string[]) {
  const options = { help: { type: 'boolean' }, json: { type: 'boolean' } } as const
  const { command, operand, values: { help, json } } = parseCommandLine(args, options, {
    up: ['json'], down: ['json', OPERAND], status: ['json'], create: [OPERAND],
  }, 'up')
  if (help) return console.log(USAGE)

  switch (command) {
    case 'up': return report('applied', await onDatabase(({ url }) => migrate(url, 'up')), json)
    case 'down': return report(
      'reverted', await onDatabase(({ url }) => migrate(url, 'down', toCount(operand))), json
    )
    case 'status': {
      const migrations = await onDatabase(({ sql }) => migrationStatus(sql))
      if (json) return console.log(JSON.stringify(migrations))
      for (const { name, applied } of migrations) report(applied ? 'applied' : 'pending', [name])
      return
    }
    case 'create':
      if (!operand || !/^[\w-]+$/.test(operand)) throw new UsageError('create needs a NAME of letters, digits, _ and -')
      return console.log(relative('.', await createMigration(operand)))
  }
}

function report (state: string, names: string[], json?: boolean) {
  if (json) return console.log(JSON.stringify({ [state]: names }))
  if (names.length === 0) console.log('Nothing to do')
  for (const name of names) console.log(`${state}  ${name}`)
}

function toCount (operand = '1') {
  if (!/^[1-9]\d*$/.test(operand)) throw new UsageError('COUNT must be a whole number from 1')
  return Number(operand)
}

import { relative } from 'node:path'

import { createMigration, migrate, migrationStatus } from '../migrations.ts'
import { onDatabase, parseCommandLine, UsageError } from './command-line.ts'

const USAGE = `Usage: npm run migrate [-- COMMAND]

  up             apply what the database lacks (the default)
  down [COUNT]   take back the last migration, or the last COUNT
  status         list all migrations and whether the database has them
  create NAME    write an empty migration into migrations/

The database is the one at DATABASE_URL, else the embedded one in DATA_DIR.`

/** `npm run migrate`: changes the schema of the database, or tells of it. */
export default async function migrateCommand (args: string[]) {
  const { command = 'up', operands: [operand], values } = parseCommandLine(args, { help: { type: 'boolean' } })
  if (values.help) return console.log(USAGE)

  switch (command) {
    case 'up': return list('applied', await onDatabase(({ url }) => migrate(url, 'up')))
    case 'down': return list('reverted', await onDatabase(({ url }) => migrate(url, 'down', toCount(operand))))
    case 'status': return onDatabase(async ({ sql }) => {
      for (const { name, applied } of await migrationStatus(sql)) list(applied ? 'applied' : 'pending', [name])
    })
    case 'create':
      if (!operand || !/^[\w-]+$/.test(operand)) throw new UsageError('create needs a NAME of letters, digits and -')
      return console.log(relative('.', await createMigration(operand)))
    default: throw new UsageError(`There is no command "${command}"`)
  }
}

function list (state: string, names: string[]) {
  if (names.length === 0) console.log('Nothing to do')
  for (const name of names) console.log(`${state}  ${name}`)
}

function toCount (operand = '1') {
  if (!/^[1-9]\d*$/.test(operand)) throw new UsageError('COUNT must be a whole number from 1')
  return Number(operand)
}

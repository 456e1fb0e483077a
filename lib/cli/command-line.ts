import { type ParseArgsConfig, parseArgs } from 'node:util'

import { type Config, loadConfig } from '../config/config.ts'
import { type Database, openDatabase, type Sql } from '../database/pools.ts'
import { assertMigrated } from '../database/migrations.ts'
import { wasNotUtf8 } from '../values/formats.ts'
import { StartupError } from '../config/startup-error.ts'

/** An invalid command line. The message names the problem. */
export class UsageError extends StartupError {
  constructor (message: string) {
    super(`${message} (see --help)`)
  }
}

type Options = NonNullable<ParseArgsConfig['options']>

/** Marks a command that takes an operand, in its list of options. */
export const OPERAND = 'OPERAND'

/**
 * Parses `COMMAND [OPERAND] [--OPTION …]`. `commands` lists the options of each command, and `fallback` is the default
 * command. Throws a UsageError for anything else, unless `--help` is given.
 */
export function parseCommandLine<T extends Options> (
  args: string[], options: T, commands: Record<string, (keyof T | typeof OPERAND)[]>, fallback?: string
) {
  const { operands: [command = fallback, operand], values } = parseOptions(args, options, 2)
  if ('help' in values) return { command, operand, values }
  if (command === undefined) throw new UsageError('Missing command')
  const taken = Object.hasOwn(commands, command) && commands[command]
  if (!taken) throw new UsageError(`Unknown command "${command}"`)
  const surplus = Object.keys(values).find(name => !taken.includes(name))
  if (surplus !== undefined) throw new UsageError(`${command} does not take --${surplus}`)
  if (operand !== undefined && !taken.includes(OPERAND)) throw new UsageError(`Unexpected argument "${operand}"`)
  return { command, operand, values }
}

/** Parses options and at most `most` operands. Throws a UsageError. With `--help`, any operands may be given. */
export function parseOptions<T extends Options> (args: string[], options: T, most: number) {
  const broken = args.find(wasNotUtf8)
  if (broken !== undefined) throw new UsageError(`"${broken}" is not UTF-8`)
  const { positionals: operands, values } = parse(args, options)
  if (operands.length > most && !('help' in values)) throw new UsageError(`Unexpected argument "${operands[most]}"`)
  return { operands, values }
}

function parse<T extends Options> (args: string[], options: T) {
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    // The first sentence is the error. Node's hints about arguments that begin with "-" follow.
    throw new UsageError((error as Error).message.split(/\.\s/, 1)[0]!)
  }
}

/** For work with statements that may take longer than DATABASE_TIMEOUT. */
export const NO_TIMEOUT = 0

/** Opens the configured database, runs the work and closes the database. The service may be running. */
export async function onDatabase<T> (
  work: (database: Database) => Promise<T>, config: Config = loadConfig(), statementSeconds?: number
): Promise<T> {
  const database = await openDatabase(config, { info: console.error, warn: console.error }, statementSeconds)
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

/** Runs work like `onDatabase`. Rejects with a StartupError if the schema of the database is not up to date. */
export function onTables<T> (work: (sql: Sql) => Promise<T>, statementSeconds?: number): Promise<T> {
  return onDatabase(async ({ sql }) => {
    await assertMigrated(sql)
    return work(sql)
  }, undefined, statementSeconds)
}

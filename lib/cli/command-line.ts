import { type ParseArgsConfig, parseArgs } from 'node:util'

import { type Config, loadConfig } from '../config.ts'
import { type Database, type Limits, openDatabase } from '../database/client.ts'
import { StartupError } from '../errors.ts'
import { wasNotUtf8 } from '../formats.ts'

/** A command line that cannot be understood; the message says what is wrong with it. */
export class UsageError extends StartupError {
  constructor (message: string) {
    super(`${message} (see --help)`)
  }
}

type Options = NonNullable<ParseArgsConfig['options']>

/** What stands among the options of a command that takes an operand. */
export const OPERAND = 'OPERAND'

/**
 * Reads `COMMAND [OPERAND] [--OPTION …]`. `commands` has what each command takes, and `fallback` is the command where
 * none is given. Whatever else stands there is a UsageError, unless `--help` is given, too.
 */
export function parseCommandLine<T extends Options> (
  args: string[], options: T, commands: Record<string, (keyof T | typeof OPERAND)[]>, fallback?: string
) {
  const { operands: [command = fallback, operand], values } = parseOptions(args, options, 2)
  if ('help' in values) return { command, operand, values }
  if (command === undefined) throw new UsageError('A command is missing')
  const taken = Object.hasOwn(commands, command) && commands[command]
  if (!taken) throw new UsageError(`There is no command "${command}"`)
  const surplus = Object.keys(values).find(name => !taken.includes(name))
  if (surplus !== undefined) throw new UsageError(`${command} does not take --${surplus}`)
  if (operand !== undefined && !taken.includes(OPERAND)) throw new UsageError(`"${operand}" is one too many`)
  return { command, operand, values }
}

/** Reads options, and at most so many operands. Throws a UsageError. */
export function parseOptions<T extends Options> (args: string[], options: T, most: number) {
  const broken = args.find(wasNotUtf8)
  if (broken !== undefined) throw new UsageError(`"${broken}" is not in UTF-8`)
  const { positionals: operands, values } = parse(args, options)
  if (operands.length > most) throw new UsageError(`"${operands[most]}" is one too many`)
  return { operands, values }
}

function parse<T extends Options> (args: string[], options: T) {
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    // After the first sentence, Node gives hints about arguments that begin with "-".
    throw new UsageError((error as Error).message.split(/\.\s/, 1)[0]!)
  }
}

/** Does some work on the database of the configuration, beside the service or without it, and closes it. */
export async function onDatabase<T> (
  work: (database: Database) => Promise<T>, config: Config = loadConfig(), limits?: Limits
): Promise<T> {
  const database = await openDatabase(config, { info: console.error, warn: console.error }, limits)
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

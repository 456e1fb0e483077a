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

/**
 * Reads `COMMAND [OPERAND] [--OPTION …]`, with an operand only after the commands that take one. Throws a UsageError.
 */
export function parseCommandLine<T extends NonNullable<ParseArgsConfig['options']>> (
  args: string[], options: T, withOperand: string[] = []
) {
  const { positionals: [command, ...operands], values } = parse(args, options)
  const surplus = operands[withOperand.includes(command ?? '') ? 1 : 0]
  if (surplus !== undefined) throw new UsageError(`"${surplus}" is one too many`)
  return { command, operand: operands[0], values }
}

function parse<T extends NonNullable<ParseArgsConfig['options']>> (args: string[], options: T) {
  const broken = args.find(wasNotUtf8)
  if (broken !== undefined) throw new UsageError(`"${broken}" is not in UTF-8`)
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

import { type ParseArgsConfig, parseArgs } from 'node:util'

import { StartupError } from '#lib/errors.js'

type Parsed<T extends ParseArgsConfig> = ReturnType<typeof parseArgs<T>>

/** Reads the command line of this process. Throws a StartupError of one line when it, or `convert`, finds it wrong. */
export function readOptions<T extends ParseArgsConfig, Options> (config: T, convert: (parsed: Parsed<T>) => Options) {
  try {
    return convert(parseArgs(config))
  } catch (error) {
    throw new StartupError(`${(error as Error).message} (see --help)`)
  }
}

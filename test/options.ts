import { type ParseArgsConfig, parseArgs } from 'node:util'

import { StartupError } from '#lib/config/startup-error.js'

type Parsed<T extends ParseArgsConfig> = ReturnType<typeof parseArgs<T>>

/** Parses the command line. Throws a StartupError of one line when it is invalid, or when `convert` throws. */
export function readOptions<T extends ParseArgsConfig, Options> (config: T, convert: (parsed: Parsed<T>) => Options) {
  try {
    return convert(parseArgs(config))
  } catch (error) {
    throw new StartupError(`${(error as Error).message} (see --help)`)
  }
}

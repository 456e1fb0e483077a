import { parseArgs } from 'node:util'

import { StartupError } from '#lib/startup-error.js'

export const USAGE = `Usage: npm run bench [-- OPTION …]

  --only PATTERN   measure only the cases whose name matches this regular expression
  --seconds N      how long each measurement lasts (2)
  --quick          a rough look: one second each, on a tenth of the data
  --soak [MINUTES] instead of all else: load for ten minutes, to see whether the memory stays flat

A complete run writes results.json, results.md and chart.svg into bench/, any other into dist/bench/; a complete soak
writes bench/soak.json.`

export interface Options {
  help: boolean
  only: RegExp
  seconds: number
  quick: boolean
  /** Minutes; `undefined` when the memory is not what this run is about. */
  soak?: number
  /** Everything is measured as it is to be published. */
  complete: boolean
}

export function readOptions (args: string[]): Options {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        only: { type: 'string' },
        seconds: { type: 'string' },
        quick: { type: 'boolean', default: false },
        soak: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
    if (positionals.length > (values.soak ? 1 : 0)) throw new Error(`Unexpected argument "${positionals.at(-1)}"`)
    return {
      help: values.help,
      only: new RegExp(values.only ?? ''),
      seconds: toNumber(values.seconds ?? (values.quick ? '1' : '2'), '--seconds'),
      quick: values.quick,
      soak: values.soak ? toNumber(positionals[0] ?? '10', '--soak') : undefined,
      complete: !values.quick && !values.only && !values.seconds && positionals.length === 0,
    }
  } catch (error) {
    throw new StartupError(`${(error as Error).message} (--help tells more)`)
  }
}

function toNumber (text: string, name: string) {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new Error(`${name} must be a whole number from 1`)
  return Number(text)
}

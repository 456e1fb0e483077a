import { readOptions } from '../options.ts'

export const USAGE = `Usage: npm run test:faults [-- OPTION …]

  --short           shorter faults, fewer connections, and not the tests of all routes: some six minutes in all
  --only PATTERN    only the faults whose name matches this regular expression
  --seed N          the first recipe of the random hostile clients; repeats a finding with --only hostile
  --allow-missing   report faults that this machine cannot run, without failing

The exit code is 1 when a promise does not hold.`

export interface Options {
  help: boolean
  short: boolean
  only: RegExp
  seed: number
  allowMissing: boolean
}

/** Parses the command line. Throws a StartupError of one line when it is invalid. */
export const readFaultOptions = (): Options => readOptions({
  options: {
    short: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    'allow-missing': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
}, ({ values: { only, seed, 'allow-missing': allowMissing, ...values } }) =>
  ({ ...values, only: new RegExp(only), seed: Number(seed), allowMissing }))

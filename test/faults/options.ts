import { readOptions } from '../options.ts'

export const USAGE = `Usage: npm run test:faults [-- OPTION …]

  --short           shorter faults, fewer connections, and not the tests of all routes: some six minutes in all
  --only PATTERN    only the faults whose name matches this regular expression
  --seed N          the first recipe of the random hostile clients; repeats a finding with --only hostile
  --memory MB       memory of a service in the faults of networks, streams and emails; 256 without it
  --allow-missing   report faults that this machine cannot run, without failing

The exit code is 1 when a promise does not hold.`

export interface Options {
  help: boolean
  short: boolean
  only: RegExp
  seed: number
  memory: number
  allowMissing: boolean
}

/** Parses the command line. Throws a StartupError of one line when it is invalid. */
export const readFaultOptions = (): Options => readOptions({
  options: {
    short: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    memory: { type: 'string', default: '256' },
    'allow-missing': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
}, ({ values: { only, seed, memory, 'allow-missing': allowMissing, ...values } }) =>
  ({ ...values, only: new RegExp(only), seed: Number(seed), memory: Number(memory), allowMissing }))

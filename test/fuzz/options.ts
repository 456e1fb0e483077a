import { randomInt } from 'node:crypto'

import { readOptions } from '../options.ts'

export const USAGE = `Usage: npm run fuzz [-- OPTION …]

  --runs N         how many requests every operation gets (2000)
  --seed S         what the requests are made from: the same seed makes the same requests (a new one each time)
  --only PATTERN   fuzz only the operations whose name, such as "POST /events", matches this regular expression
  --path PATH      repeat one request of --seed: the path is printed with a failure; --only must name its operation`

export interface Options {
  help: boolean
  runs: number
  seed: number
  only: RegExp
  path?: string
}

/** Parses the command line. Throws a StartupError of one line when it is invalid. */
export const readFuzzOptions = (): Options => readOptions({
  options: {
    runs: { type: 'string', default: '2000' },
    seed: { type: 'string', default: String(randomInt(1, 2 ** 31)) },
    only: { type: 'string', default: '' },
    path: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
}, ({ values }) => ({
  ...values,
  runs: toNumber(values.runs, '--runs'),
  seed: toNumber(values.seed, '--seed'),
  only: new RegExp(values.only),
}))

function toNumber (text: string, name: string) {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new Error(`${name} must be a whole number from 1`)
  return Number(text)
}

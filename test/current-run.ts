import { readFileSync } from 'node:fs'

import { type Run, RUN_FILE } from './run.ts'

/** Where the databases of the run are that has been prepared. */
export function currentRun (): Run {
  return JSON.parse(readFileSync(RUN_FILE, 'utf8'))
}

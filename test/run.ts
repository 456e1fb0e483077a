import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Files of a test run: its embedded server, and where the databases are. Removed when it ends. */
export const RUN_DIR = '.data/test-run'

/** The server of this run, and the migrated database that every test file copies. */
export interface Run {
  /** The address of a database to connect to for making and dropping others. */
  url: string
  /** The name of the template; the copies are called the same with something behind it. */
  template: string
}

export const RUN_FILE = join(RUN_DIR, 'run.json')

/** The server and the template of the current run. */
export function currentRun (): Run {
  return JSON.parse(readFileSync(RUN_FILE, 'utf8'))
}

/** The same server, another database. */
export function withDatabase (url: string, name: string) {
  return Object.assign(new URL(url), { pathname: `/${name}` }).href
}

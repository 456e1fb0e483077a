import { join } from 'node:path'

/**
 * What a test run keeps: its embedded server, and, in a file, where the databases are. Removed when it ends.
 * A link to a folder in memory where there is room for it, as run-dir.ts sees to.
 */
export const RUN_DIR = '.data/test-run'

/** The server of this run, and the migrated database that every test file copies. */
export interface Run {
  /** The address of a database to connect to for making and dropping others. */
  url: string
  /** The name of the template; the copies are called the same with something behind it. */
  template: string
}

export const RUN_FILE = join(RUN_DIR, 'run.json')

/** The same server, another database. */
export function withDatabase (url: string, name: string) {
  return Object.assign(new URL(url), { pathname: `/${name}` }).href
}

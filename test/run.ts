import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Files of a test run: its embedded server and `run.json`. Removed when the run ends. */
export const RUN_DIR = '.data/test-run'

/** The database server of a test run. */
export interface Run {
  /** The URL of a database to connect to for CREATE and DROP DATABASE. */
  url: string
  /** The name of the migrated template database, and the prefix of its copies. */
  template: string
}

export const RUN_FILE = join(RUN_DIR, 'run.json')

/** Reads the server and the template of the current run. */
export function currentRun (): Run {
  return JSON.parse(readFileSync(RUN_FILE, 'utf8'))
}

/** The URL of the superuser of an embedded server, who has the same password as the role of the service. */
export function asSuperuser (url: string) {
  return Object.assign(new URL(url), { username: 'postgres' }).href
}

/** Changes the database in the URL. */
export function withDatabase (url: string, name: string) {
  return Object.assign(new URL(url), { pathname: `/${name}` }).href
}

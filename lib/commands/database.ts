import { once } from 'node:events'

import { onDatabase, parseCommandLine, UsageError } from './command-line.ts'

const USAGE = `Usage: npm run --silent database -- url [--hold]

  url   print the address of the database, with the password in it, for psql, pg_dump and other programs

--hold   keep the database there until Ctrl-C: the embedded one runs no longer than the service, or a command

The database is the one at DATABASE_URL, else the embedded one in DATA_DIR.`

/** `npm run database`: tells other programs where the database is. */
export default async function databaseCommand (args: string[]) {
  const { command, values } = parseCommandLine(args, { hold: { type: 'boolean' }, help: { type: 'boolean' } })
  if (values.help) return console.log(USAGE)
  if (command !== 'url') throw new UsageError(command ? `There is no command "${command}"` : 'A command is missing')

  await onDatabase(async ({ url }) => {
    console.log(url)
    // The open connections keep the process alive.
    if (values.hold) await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
  })
}

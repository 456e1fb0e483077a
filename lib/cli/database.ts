import { once } from 'node:events'

import { countPastRegistrations, removePastRegistrations } from '../agenda/retention.ts'
import { isBase } from '../config/config.ts'
import { movePictures } from '../pictures/move.ts'
import { countUnusedPictures, deleteUnusedPictures } from '../pictures/uses.ts'
import { NO_TIMEOUT, onDatabase, onTables, parseCommandLine, UsageError } from './command-line.ts'

const USAGE = `Usage: npm run --silent database -- COMMAND

  url [--hold]
      print the URL of the database, including the password, for psql, pg_dump and other programs
  retention --registrations-older-than AGE [--dry-run]
      delete registrations for past events that are older than AGE (a number and d, w or y, for example 2y), and
      pictures that have been unused for a day
  move-pictures --from URL --to URL [--dry-run]
      replace the URL of the service in the links to its pictures, after PUBLIC_URL has changed

--hold      keep the embedded database running until Ctrl-C, if the service is not running
--dry-run   count the rows without changing them, so that you can check the effect first

The database is DATABASE_URL or, if unset, the embedded database in DATA_DIR.`

/** `npm run database`: prints the URL of the database, deletes old registrations, or moves pictures. */
export default async function databaseCommand (args: string[]) {
  const { command, values } = parseCommandLine(args, {
    hold: { type: 'boolean' },
    'registrations-older-than': { type: 'string' },
    from: { type: 'string' },
    to: { type: 'string' },
    'dry-run': { type: 'boolean' },
    help: { type: 'boolean' },
  }, {
    url: ['hold'], retention: ['registrations-older-than', 'dry-run'], 'move-pictures': ['from', 'to', 'dry-run'],
  })
  if (values.help) return console.log(USAGE)
  if (command === 'move-pictures') return move(values, values['dry-run'])
  if (command === 'retention') return retain(values['registrations-older-than'], values['dry-run'])

  await onDatabase(async ({ url }) => {
    console.log(url)
    // The open connections keep the process alive.
    if (values.hold) await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
  })
}

const UNITS: Record<string, string> = { d: 'days', w: 'weeks', y: 'years' }

/** Deletes registrations that are older than an age. */
async function retain (age = '', dryRun = false) {
  // PostgreSQL knows no time that is 7,000 years ago.
  const [, number, unit] = /^([1-9]\d{0,2}|[1-9]\d{3}(?=[dw]))([dwy])$/.exec(age) ?? []
  if (!unit) throw new UsageError('retention needs --registrations-older-than with a number and d, w or y, such as 2y')
  const interval = `${number} ${UNITS[unit]}`
  await onTables(async sql => {
    if (dryRun) {
      const { registrations, events } = await countPastRegistrations(sql, interval)
      console.log(`Would delete ${registrations} registrations for ${events} events`)
      const pictures = await countUnusedPictures(sql)
      return pictures > 0 && console.log(`Would delete ${pictures} unused pictures`)
    }
    const removed = await removePastRegistrations(sql, interval, removed => console.error(`${removed} deleted`))
    console.log(`Deleted ${removed} registrations`)
    const pictures = await deleteUnusedPictures(sql)
    if (pictures > 0) console.log(`Deleted ${pictures} unused pictures`)
  }, NO_TIMEOUT)
}

/** Replaces the URL of the service in the links to its pictures. */
async function move ({ from = '', to = '' }: { from?: string, to?: string }, dryRun = false) {
  for (const [option, value] of Object.entries({ from, to })) {
    if (!isBase(value)) throw new UsageError(`move-pictures needs --${option} with an http or https URL`)
  }
  const [before, after] = [from, to].map(url => url.replace(/\/$/, ''))
  const count = await onTables(sql => movePictures(sql, { from: before!, to: after!, dryRun }), NO_TIMEOUT)
  console.log(`${dryRun ? 'Would change' : 'Changed'} the pictures of ${count} rows`)
}

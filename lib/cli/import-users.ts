import { createReadStream } from 'node:fs'

import { type Info, parse } from 'csv-parse'

import { type Role, ROLES } from '../auth/accounts.ts'
import { PLACEHOLDER } from '../auth/passwords.ts'
import type { Sql } from '../database/client.ts'
import { StartupError } from '../errors.ts'
import { isEmail, isText, printableLine } from '../formats.ts'

const COLUMNS = ['email', 'firstName', 'lastName', 'role', 'club'] as const
const REQUIRED: readonly string[] = COLUMNS.slice(0, 3)

type Cells = Record<typeof COLUMNS[number], string>

interface NewUser {
  line: number
  email: string
  firstName: string
  lastName: string
  role: Role
  clubId: string | null
}

/**
 * Adds an account for every row of a CSV file (RFC 4180, UTF-8) with the columns email, firstName and lastName, and, if
 * wanted, role and club (its name). The accounts have no password. All rows are checked before any is written, by one
 * statement. Returns the number of rows. Throws a StartupError that lists every invalid row.
 */
export async function importUsers (sql: Sql, file: string, { dryRun = false } = {}): Promise<number> {
  const wrong: [line: number, what: string][] = []
  const users = await readUsers(sql, file, wrong)
  const taken = await sql<{ line: number, email: string }[]>`
    SELECT line, email FROM ${toRows(sql, users)} JOIN users USING (email)
  `
  for (const { line, email } of taken) wrong.push([line, `${email} has an account already`])
  if (wrong.length > 0) {
    const lines = wrong.sort(([one], [other]) => one - other)
      .map(([line, what]) => `Line ${line}: ${printableLine(what)}`)
    throw new StartupError([...lines, 'Nothing was imported'].join('\n'))
  }
  if (dryRun) return users.length
  try {
    await sql`
      INSERT INTO users (email, password, first_name, last_name, role, club_id)
      SELECT email, ${PLACEHOLDER}, "firstName", "lastName", role, "clubId" FROM ${toRows(sql, users)}
    `
  } catch (error) {
    throw new StartupError(`Nothing was imported: ${(error as Error).message}`)
  }
  return users.length
}

/** The users as a table, in one parameter however many they are. */
const toRows = (sql: Sql, users: NewUser[]) => sql`
  jsonb_to_recordset(${JSON.stringify(users)}::text::jsonb) AS added (
    line integer, email text, "firstName" text, "lastName" text, role text, "clubId" uuid
  )
`

/** Reads the rows that are right, and notes what is wrong with the others. */
async function readUsers (sql: Sql, file: string, wrong: [line: number, what: string][]) {
  const clubs = new Map((await sql<{ id: string, name: string }[]>`SELECT id, name FROM clubs`)
    .map(({ id, name }) => [name, id]))
  const lines = new Map<string, number>()
  const users: NewUser[] = []
  let header: string[] | undefined
  for await (const { record, line } of readRecords(file)) {
    if (!header) {
      header = record
      const missing = REQUIRED.filter(name => !record.includes(name))
      if (missing.length > 0) throw new StartupError(`The first line must name the columns: ${missing} is missing`)
      continue
    }
    const issues = record.length === header.length ? [] : [`${record.length} cells instead of ${header.length}`]
    if (issues.length === 0) {
      const cells = toCells(header, record)
      issues.push(...issuesOf(cells, clubs))
      const first = lines.get(cells.email)
      if (first) issues.push(`${cells.email} is on line ${first} already`)
      else lines.set(cells.email, line)
      if (issues.length === 0) users.push(toUser(line, cells, clubs))
    }
    if (issues.length > 0) wrong.push([line, issues.join(', ')])
  }
  if (!header) throw new StartupError('The file is empty')
  return users
}

/** The records of a file, each with the number of its last line. */
async function * readRecords (file: string): AsyncIterable<{ record: string[], line: number }> {
  const options = { bom: true, info: true, relax_column_count: true, skip_empty_lines: true }
  const source = createReadStream(file)
  const parser = source.pipe(parse(options))
  source.once('error', error => parser.destroy(error))
  try {
    for await (const { record, info } of parser as AsyncIterable<{ record: string[], info: Info }>) {
      yield { record, line: info.lines }
    }
  } catch (error) {
    // The file cannot be read, or some line is not CSV.
    throw new StartupError(`${file}: ${(error as Error).message}`)
  }
}

/** The cells by their columns; a column that is not there is empty. */
function toCells (header: string[], record: string[]) {
  const cells = Object.fromEntries(COLUMNS.map(name => [name, record[header.indexOf(name)] ?? ''])) as Cells
  return { ...cells, role: cells.role || 'STUDENT' }
}

function toUser (line: number, { email, firstName, lastName, role, club }: Cells, clubs: Map<string, string>): NewUser {
  return { line, email, firstName, lastName, role: role as Role, clubId: clubs.get(club) ?? null }
}

function issuesOf (cells: Cells, clubs: Map<string, string>) {
  const { email, firstName, lastName, role, club } = cells
  const issues: string[] = []
  if (!isEmail(email)) issues.push(`"${email}" is no email address`)
  if (!firstName) issues.push('firstName is empty')
  if (!lastName) issues.push('lastName is empty')
  if (!isText(firstName + lastName)) issues.push('a name has the character NUL')
  if (!ROLES.includes(role as Role)) issues.push(`"${role}" is no role: ${ROLES.join(', ')}`)
  if (club && !clubs.has(club)) issues.push(`there is no club "${club}"`)
  return issues
}

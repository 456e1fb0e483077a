import { readFile } from 'node:fs/promises'

import type { Info } from 'csv-parse'
import { parse } from 'csv-parse/sync'

import { type Role, ROLES } from '../values/roles.ts'
import { PLACEHOLDER } from '../auth/passwords.ts'
import { fromCell, toLine } from '../values/csv.ts'
import type { AnySql, Sql } from '../database/pools.ts'
import { isName, NOT_A_NAME, printableLine, wasNotUtf8 } from '../values/formats.ts'
import { StartupError } from '../config/startup-error.ts'

const COLUMNS = ['email', 'firstName', 'lastName', 'role', 'club'] as const
const REQUIRED = COLUMNS.slice(0, 3)

/** The columns of `users.csv`. The import ignores `createdAt`. */
const KNOWN = [...COLUMNS, 'createdAt'] as const

type Column = typeof KNOWN[number]
type Cells = Record<Column, string>

/** An email address of any form, because accounts from the identity provider may have unusual addresses. */
const ADDRESS = /^[^\s\p{Cc}@]+@[^\s\p{Cc}@]+$/u

const NOT_UTF8 = 'is not UTF-8. Save the file as "CSV UTF-8"'

interface NewUser {
  line: number
  email: string
  firstName: string
  lastName: string
  role: Role
  clubId: string | null
}

/**
 * Adds an account without a password for each row of a CSV file (RFC 4180, UTF-8). The columns are email, firstName,
 * lastName and optionally role and club (its name). Checks all rows first, then inserts them in one statement. Without
 * these checks, PostgreSQL would accept five of eight kinds of wrong rows, for example `ada` as an email address, and
 * refuse one other row in each run. Returns the number of rows. Throws a StartupError that lists every invalid row.
 */
export async function importUsers (sql: Sql, file: string, { dryRun = false } = {}): Promise<number> {
  const wrong: [line: number, what: string][] = []
  const users = await readUsers(sql, file, wrong)
  const taken = await sql<{ line: number, email: string, known: string }[]>`
    SELECT line, added.email, users.email AS known
    FROM ${toRows(sql, users)} JOIN users ON lower(users.email COLLATE "C") = lower(added.email COLLATE "C")
  `
  for (const { line, email, known } of taken) {
    wrong.push([line, `${email} already has an account${known === email ? '' : `: ${known}`}`])
  }
  if (wrong.length > 0) {
    const lines = wrong.sort(([one], [other]) => one - other)
      .map(([line, what]) => `Line ${line}: ${printableLine(what)}`)
    throw new StartupError([...lines, 'No accounts were added'].join('\n'))
  }
  if (dryRun) return users.length
  try {
    await sql`
      INSERT INTO users (email, password, first_name, last_name, role, club_id)
      SELECT email, ${PLACEHOLDER}, "firstName", "lastName", role, "clubId" FROM ${toRows(sql, users)}
    `
  } catch (error) {
    throw new StartupError(`No accounts were added: ${(error as Error).message}`)
  }
  return users.length
}

/** The users as a table, in a single parameter. */
const toRows = (sql: AnySql, users: NewUser[]) => sql`
  jsonb_to_recordset(${JSON.stringify(users)}::text::jsonb) AS added (
    line integer, email text, "firstName" text, "lastName" text, role text, "clubId" uuid
  )
`

/** Reads the valid rows and adds the issues of other rows to `wrong`. */
async function readUsers (sql: Sql, file: string, wrong: [line: number, what: string][]) {
  const clubs = new Map((await sql<{ id: string, name: string }[]>`SELECT id, name FROM clubs`)
    .map(({ id, name }) => [toLine(name), id]))
  const lines = new Map<string, number>()
  const users: NewUser[] = []
  const [first, ...records] = await readRecords(file)
  if (!first) throw new StartupError('The file is empty')
  const header = toHeader(first.record)
  for (const { record, info: { lines: line } } of records) {
    const issues = record.length === header.length ? [] : [`${record.length} cells instead of ${header.length}`]
    if (issues.length === 0) {
      const cells = toCells(header, record)
      issues.push(...issuesOf(cells, clubs))
      const mailbox = cells.email.toLowerCase()
      const earlier = lines.get(mailbox)
      if (earlier) issues.push(`${cells.email} is also on line ${earlier}`)
      else lines.set(mailbox, line)
      if (issues.length === 0) users.push(toUser(line, cells, clubs))
    }
    if (issues.length > 0) wrong.push([line, issues.join(', ')])
  }
  return users
}

/** Returns the records that are not empty, each with the number of its last line. */
async function readRecords (file: string) {
  try {
    // Invalid UTF-8 becomes U+FFFD, which marks the line.
    return parse(await readFile(file), {
      bom: true, info: true, relax_column_count: true, skip_empty_lines: true, skip_records_with_empty_values: true,
    }) as unknown as { record: string[], info: Info }[]
  } catch (error) {
    // The file cannot be read, or a line is not CSV.
    throw new StartupError(`${file}: ${(error as Error).message}`)
  }
}

/** Reads the columns from the first line, ignoring case. Throws a StartupError if they are not as required. */
function toHeader (record: string[]) {
  if (record.some(wasNotUtf8)) throw new StartupError(`The first line ${NOT_UTF8}`)
  const header = record.map(name => KNOWN.find(known => known.toLowerCase() === name.trim().toLowerCase()))
  const issues = [
    ...record.filter((_name, index) => !header[index]).map(name => `"${name}" is not one of ${KNOWN.join(', ')}`),
    ...KNOWN.filter(name => header.indexOf(name) < header.lastIndexOf(name)).map(name => `${name} is repeated`),
    ...REQUIRED.filter(name => !header.includes(name)).map(name => `${name} is missing`),
  ]
  if (issues.length > 0) {
    throw new StartupError(`The first line must name the columns, separated by commas: ${issues.join('; ')}`)
  }
  return header as Column[]
}

/** Maps columns to cells. A missing column is empty. */
function toCells (header: Column[], record: string[]) {
  const cells = Object.fromEntries(KNOWN.map(name => [name, fromCell(record[header.indexOf(name)] ?? '')])) as Cells
  return { ...cells, role: cells.role || 'STUDENT' }
}

function toUser (line: number, { email, firstName, lastName, role, club }: Cells, clubs: Map<string, string>): NewUser {
  return { line, email, firstName, lastName, role: role as Role, clubId: clubs.get(toLine(club)) ?? null }
}

function issuesOf (cells: Cells, clubs: Map<string, string>) {
  const { email, firstName, lastName, role, club } = cells
  const issues: string[] = []
  if (Object.values(cells).some(wasNotUtf8)) issues.push(NOT_UTF8)
  if (email.length > 254 || !ADDRESS.test(email)) issues.push(`"${email}" is not an email address`)
  if (!firstName) issues.push('firstName is empty')
  else if (!isName(firstName)) issues.push(`firstName ${NOT_A_NAME}`)
  // Some people have one name.
  if (lastName && !isName(lastName)) issues.push(`lastName ${NOT_A_NAME}`)
  if (!ROLES.includes(role as Role)) issues.push(`"${role}" is not one of ${ROLES.join(', ')}`)
  if (club && !clubs.has(toLine(club))) issues.push(`club "${club}" does not exist`)
  return issues
}

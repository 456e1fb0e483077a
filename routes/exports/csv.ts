import { pipeline, Readable } from 'node:stream'

import { stringify } from 'csv-stringify'

/**
 * Writes rows as CSV (RFC 4180) while they are read: in UTF-8, with a byte order mark by which spreadsheets know it,
 * and with an apostrophe before what they would take for a formula.
 */
export function toCsv (rows: AsyncIterable<object>, columns: Record<string, string>) {
  const csv = stringify({ header: true, columns, bom: true, record_delimiter: 'windows', escape_formulas: true })
  // An error destroys `csv`, so its reader gets it.
  pipeline(Readable.from(rows), csv, () => {})
  return csv
}

/** A part of a file name that every system takes, made of some text. */
export function toFileName (text: string) {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase().match(/[a-z0-9]+/g)?.join('-').slice(0, 50) ?? ''
}

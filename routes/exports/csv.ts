import { pipeline, Readable } from 'node:stream'

import { stringify } from 'csv-stringify'

/**
 * Places where a spreadsheet finds a formula (OWASP, CSV Injection): at the start of a cell, and after a semicolon, a
 * tab or a line break in it, since quotes do not help a spreadsheet that separates by those.
 */
const FORMULAS = /^(?=[\t\r])|(?<=^|[;\t\r\n])(?=["'\s]*[=+\-@＝＋－＠])/g

/**
 * Writes rows as CSV (RFC 4180) while they are read: in UTF-8, with a byte order mark by which spreadsheets know it,
 * and with an apostrophe before what they would take for a formula.
 */
export function toCsv (rows: AsyncIterable<object>, columns: Record<string, string>) {
  const csv = stringify({
    header: true,
    columns,
    bom: true,
    record_delimiter: 'windows',
    // Otherwise off, with a delimiter of our own: a line break in a name would begin a row.
    quote_record_delimiter: true,
    cast: { string: text => text.replace(FORMULAS, '\'') },
  })
  // An error destroys `csv`, so its reader gets it.
  pipeline(Readable.from(rows), csv, () => {})
  return csv
}

/** A part of a file name that every system takes, made of some text. */
export function toFileName (text: string) {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase().match(/[a-z0-9]+/g)?.join('-').slice(0, 50) ?? ''
}

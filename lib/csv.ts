import { pipeline, Readable } from 'node:stream'

import { stringify } from 'csv-stringify'

/**
 * Places where a spreadsheet finds a formula (OWASP, CSV Injection): at the start of a cell, and after a semicolon or a
 * tab in it, since spreadsheets that separate by those ignore our quotes. After a separator, a quote would open a cell
 * that goes on in the next rows.
 */
const FORMULAS = /(?<=^|;)(?=\t)|(?<=^|[;\t])(?=(?:["']|(?!\t)\s)*[=+\-@＝＋－＠])|(?<=[;\t])(?="|$)/g

/** The apostrophes that stand there. */
const ESCAPES = /(?<=^|;)'(?=\t)|(?<=^|[;\t])'(?=(?:["']|(?!\t)\s)*[=+\-@＝＋－＠])|(?<=[;\t])'(?="|$)/g

/** For the same reason a line break in a cell would begin a row. */
const LINE_BREAKS = /\r\n|[\r\n]/g

/**
 * Writes rows as CSV (RFC 4180) while they are read: in UTF-8, with a byte order mark by which spreadsheets know it,
 * with an apostrophe before what they would take for a formula, and a space for a line break.
 */
export function toCsv (rows: AsyncIterable<object>, columns: Record<string, string>) {
  const csv = stringify({
    header: true,
    columns,
    bom: true,
    record_delimiter: 'windows',
    cast: { string: text => toLine(text).replace(FORMULAS, '\'') },
  })
  // An error destroys `csv`, so its reader gets it.
  pipeline(Readable.from(rows), csv, () => {})
  return csv
}

/** The text on one line, as a cell has it. */
export function toLine (text: string) {
  return text.replace(LINE_BREAKS, ' ')
}

/** The text that `toCsv` has written into this cell, but for its line breaks. */
export function fromCell (cell: string) {
  return cell.replace(ESCAPES, '')
}

/** A part of a file name that every system takes, made of some text. */
export function toFileName (text: string) {
  // A normalization sorts the marks of a character, which takes seconds for a character of 100,000 marks.
  const words = text.slice(0, 500).normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase().match(/[a-z0-9]+/g)
  return words?.join('-').slice(0, 50) ?? ''
}

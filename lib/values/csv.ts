import { pipeline, Readable } from 'node:stream'

import { stringify } from 'csv-stringify'

/**
 * Positions where a spreadsheet could find a formula (OWASP, CSV Injection): at the start of a cell, and after a
 * semicolon or tab, because spreadsheets that split at these ignore our quotes. After such a separator, a quote would
 * open a cell that continues in the next rows.
 */
const FORMULAS = /(?<=^|;)(?=\t)|(?<=^|[;\t])(?=(?:["']|(?!\t)\s)*[=+\-@＝＋－＠])|(?<=[;\t])(?="|$)/g

/** The apostrophes at these positions. */
const ESCAPES = /(?<=^|;)'(?=\t)|(?<=^|[;\t])'(?=(?:["']|(?!\t)\s)*[=+\-@＝＋－＠])|(?<=[;\t])'(?="|$)/g

/** Line breaks, which would begin a new row for the same reason. */
const LINE_BREAKS = /\r\n|[\r\n]/g

/**
 * Streams rows as CSV (RFC 4180) in UTF-8, with a byte order mark for spreadsheets. Puts an apostrophe before possible
 * formulas, and replaces line breaks by spaces.
 */
export function toCsv (rows: AsyncIterable<object>, columns: Record<string, string>) {
  const csv = stringify({
    header: true,
    columns,
    bom: true,
    record_delimiter: 'windows',
    cast: { string: text => toLine(text).replace(FORMULAS, '\'') },
  })
  // An error destroys `csv`, so that its reader gets the error.
  pipeline(Readable.from(rows), csv, () => {})
  return csv
}

/** Replaces line breaks by spaces, as in a cell. */
export function toLine (text: string) {
  return text.replace(LINE_BREAKS, ' ')
}

/** Returns the original text of a cell that `toCsv` wrote, except for its line breaks. */
export function fromCell (cell: string) {
  return cell.replace(ESCAPES, '')
}

/** Converts text to a part of a file name that is valid on every system. */
export function toFileName (text: string) {
  // Normalization sorts the combining marks of a character, which takes seconds for 100,000 marks.
  const words = text.slice(0, 500).normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase().match(/[a-z0-9]+/g)
  return words?.join('-').slice(0, 50) ?? ''
}

import type { Message } from './requests.ts'

/** Counts the responses of an operation by status. */
export class Tally {
  readonly #statuses = new Map<number, number>()
  /** Requests sent so far. */
  requests = 0

  add (status: number) {
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1)
  }

  has (status: number) {
    return this.#statuses.has(status)
  }

  /** Responses in a class, such as 2 for 2xx. */
  count (first: number) {
    const counts = [...this.#statuses].filter(([status]) => Math.floor(status / 100) === first)
    return counts.reduce((sum, [, count]) => sum + count, 0)
  }
}

const COLUMNS = [['requests', 8], ['2xx', 6], ['3xx', 6], ['4xx', 6], ['5xx', 6]] as const

export function showHeader () {
  console.log(`${'operation'.padEnd(32)}${COLUMNS.map(([name, width]) => name.padStart(width + 2)).join('')}`)
}

export function showRow (name: string, tally: Tally) {
  const cells = [tally.requests, ...[2, 3, 4, 5].map(first => tally.count(first))]
  console.log(`${name.padEnd(32)}${COLUMNS.map(([, width], n) => String(cells[n]).padStart(width + 2)).join('')}`)
}

/** Bytes of a request that are printed; a longer one can be repeated by its path. */
const SHOWN = 4000

/** A shell command that sends exactly these bytes. */
export function commandOf ({ bytes }: Message, port: number) {
  const text = bytes.subarray(0, SHOWN).toString('latin1')
    .replace(/[^ -~]|['\\%]/g, character => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
    .replaceAll('\\x0d\\x0a', '\\r\\n')
  const rest = bytes.length > SHOWN ? ` # and ${bytes.length - SHOWN} bytes more` : ''
  return `printf '${text}' | nc 127.0.0.1 ${port}${rest}`
}

import type { Message } from './requests.ts'

/** How often an operation gave which responses. */
export class Tally {
  readonly #statuses = new Map<number, number>()
  /** What was sent so far. */
  requests = 0

  add (status: number) {
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1)
  }

  has (status: number) {
    return this.#statuses.has(status)
  }

  /** How many responses were of this class: 2 for 200 to 299. */
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

/** How many bytes of a request are shown; a longer one is repeated by its path. */
const SHOWN = 4000

/** A command that sends the very bytes. */
export function commandOf ({ bytes }: Message, port: number) {
  const text = bytes.subarray(0, SHOWN).toString('latin1')
    .replace(/[^ -~]|['\\%]/g, character => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
    .replaceAll('\\x0d\\x0a', '\\r\\n')
  const rest = bytes.length > SHOWN ? ` # and ${bytes.length - SHOWN} bytes more` : ''
  return `printf '${text}' | nc 127.0.0.1 ${port}${rest}`
}

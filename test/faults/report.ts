import type { Load } from './load.ts'

/** The outcome of a fault. */
export interface Row {
  fault: string
  sent: number
  answered: number
  failed: number
  acknowledged: number
  lost: number
  /** The longest response time, in seconds. */
  slowest: number
  /** Seconds from the end of the fault until requests succeeded again. */
  recovery?: number
  /** Other measurements. */
  note?: string
  /** The broken promises. */
  problems: string[]
  /** Why this machine cannot run it. */
  missing?: string
}

const COLUMNS = [
  ['fault', -46], ['sent', 7], ['succeeded', 9], ['failed as declared', 18], ['acknowledged writes', 19], ['lost', 5],
  ['slowest s', 9], ['recovered s', 11],
] as const

export function showHeader () {
  console.log(line(COLUMNS.map(([title]) => title)))
}

export function showRow (row: Row) {
  const { fault, sent, answered, failed, acknowledged, lost, slowest, recovery, note, problems, missing } = row
  const seconds = (value?: number) => value === undefined ? '' : value.toFixed(1)
  console.log(line(missing
    ? [fault, `not run: ${missing}`]
    : [fault, ...[sent, answered, failed, acknowledged, lost].map(String), seconds(slowest), seconds(recovery)]))
  if (note) console.log(`    ${note}`)
  for (const problem of problems) console.log(`  ! ${problem}`)
}

function line (cells: string[]) {
  return cells.map((cell, n) => {
    const width = COLUMNS[n]![1]
    return width < 0 ? cell.padEnd(-width) : cell.padStart(width)
  }).join('  ').trimEnd()
}

/** The row of a load that was stopped. */
export function rowOf (fault: string, loads: Load[], lost: string[]): Row {
  const sum = (value: (load: Load) => number) => loads.reduce((total, load) => total + value(load), 0)
  return {
    fault,
    sent: sum(load => load.sent),
    answered: sum(load => load.answered),
    failed: sum(load => load.failed),
    acknowledged: sum(load => load.ledger.size),
    lost: lost.length,
    slowest: Math.max(0, ...loads.map(load => load.slowest)) / 1000,
    problems: [...loads.flatMap(load => load.problems), ...lost.slice(0, 5).map(what => `lost: ${what}`)],
  }
}

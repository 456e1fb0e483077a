import type { Outcome } from './http.ts'
import type { Load } from './load.ts'
import { allowance, percentile } from '../statistics.ts'

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
  /** Median response times of the honest clients without and with the fault, in milliseconds. */
  medians?: { alone: number, beside: number }
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

/**
 * The factor and the least time of a median in milliseconds that others may notice. Even a request that waits for
 * nothing takes several times as long while an attack uses all cores.
 */
export const SLOWER = { times: 3, least: 100 }

/** Records what honest clients notice, and a problem if more than one in ten fail or the median is late. */
export function judge (row: Row, alone: Outcome[], beside: Outcome[], isTimed: boolean) {
  const failures = beside.filter(({ status }) => status < 200 || status > 299)
  const failed = failures.length
  const median = (outcomes: Outcome[]) => percentile(outcomes.map(({ took }) => took), 50)
  row.sent += beside.length
  row.failed += failed
  row.answered += beside.length - failed
  row.slowest = Math.max(row.slowest, percentile(beside.map(({ took }) => took), 100) / 1000)
  row.medians = { alone: median(alone), beside: median(beside) }
  if (failed > beside.length / 10) row.problems.push(`${failed} of ${beside.length} failed: ${statusesOf(failures)}`)
  // Other work on the machine delays the rest.
  if (isTimed && !(row.medians.beside <= allowance(row.medians.alone, SLOWER))) {
    row.problems.push(`the median was ${Math.round(row.medians.beside)} ms, and ${Math.round(row.medians.alone)} alone`)
  }
}

/** Tells how many outcomes have which status or error. */
export function statusesOf (outcomes: Outcome[]) {
  const counts = new Map<number | string, number>()
  for (const { error, status } of outcomes) counts.set(error ?? status, (counts.get(error ?? status) ?? 0) + 1)
  return [...counts].map(([what, count]) => `${count} × ${what}`).join(', ')
}

/** Shows for each attack whether nine of ten answers were as declared, and the median within three times. */
export function showAttacks (rows: Row[]) {
  const attacks = rows.filter(({ medians }) => medians)
  if (attacks.length === 0) return
  console.log('\n| Attack | Nine of ten as declared | Median alone | Median beside it | Held |\n|---|---|---|---|---|')
  for (const { fault, sent, answered, medians, problems } of attacks) {
    const { alone, beside } = medians!
    console.log(`| ${fault} | ${answered} of ${sent} | ${Math.round(alone)} ms | ${Math.round(beside)} ms, ` +
      `× ${(beside / alone).toFixed(1)} | ${problems.length === 0 ? 'yes' : 'no'} |`)
  }
  console.log()
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

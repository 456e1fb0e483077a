import type { Measure } from './measure.ts'

const COLUMNS = [
  ['case', -42], ['of', -15], ['data', -5], ['connections', 11], ['requests/s', 10], ['p50 ms', 9], ['p99 ms', 9],
  ['CPU s/1,000', 11], ['peak MB', 8],
] as const

function line (cells: string[]) {
  return cells.map((cell, n) => {
    const width = COLUMNS[n]![1]
    return width < 0 ? cell.padEnd(-width) : cell.padStart(width)
  }).join('  ').trimEnd()
}

/** A number of three digits that count: 48,200, 9.31, 0.041. */
export function figure (value: number | undefined) {
  if (value === undefined || Number.isNaN(value)) return ''
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

export function showHeader () {
  console.log(line(COLUMNS.map(([title]) => title)))
}

export function showMeasure ({ case: name, target, world, connections, rate, p50, p99, cpu, peak }: Measure) {
  console.log(line([name, target, world, String(connections), ...[rate, p50, p99, cpu, peak].map(figure)]))
}

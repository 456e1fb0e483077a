import { percentile } from '../test/statistics.ts'

/** Responses per second, their latency in ms, CPU seconds for 1,000 of them, and the peak memory in MB. */
export interface Figures {
  rate: number
  p50?: number
  p99?: number
  cpu?: number
  peak?: number
}

/** The measurement of a case. */
export interface Measure extends Figures {
  case: string
  /** The service, a baseline or the alternative. */
  of: string
  /** The rate of each turn. */
  rates?: (number | undefined)[]
}

/** Whether a figure reaches its goal. */
export interface Verdict {
  measured: string
  needed: string
  met: 'yes' | 'yes (within a tenth)' | 'no'
}

const TITLES = ['Case', 'Of', 'Requests/s', 'p50 ms', 'p99 ms', 'CPU s/1,000', 'Peak MB']

/** All results of a run. */
export class Results {
  readonly measures: Measure[] = []
  /** By name, the verdicts on the service with its defaults and, for some, with LOG_LEVEL=warn. */
  readonly goals: Record<string, Verdict[]> = {}
  /** Errors, each of which fails the run. */
  readonly problems: string[] = []

  add (measure: Measure) {
    this.measures.push(measure)
    const { case: name, of, rate, p50, p99, cpu, peak } = measure
    if (this.measures.length === 1) printLine(TITLES)
    printLine([name, of, ...[rate, p50, p99, cpu, peak].map(figure)])
  }

  fail (problem: string) {
    this.problems.push(problem)
    console.log(`! ${problem}`)
  }

  find (name: string, of: string) {
    return this.measures.find(measure => measure.case === name && measure.of === of)
  }

  /** The ratio of two rates: the median of the ratios of all turns that both had. */
  ratio (name: string, of: string, other: string) {
    const [rates, others] = [of, other].map(of => this.find(name, of)?.rates ?? [])
    return median(rates!.map((rate, turn) => rate! / others![turn]!))
  }
}

function printLine ([name, of, ...figures]: string[]) {
  console.log(name!.padEnd(54), of!.padEnd(31), ...figures.map(text => text.padStart(11)))
}

/** A rate that misses its goal by less than a tenth counts as met, because machines vary by that much. */
export function fastEnough (measured: number, needed: number): Verdict {
  const met = measured >= needed ? 'yes' : measured > needed * 0.9 ? 'yes (within a tenth)' : 'no'
  return { measured: figure(measured), needed: `at least ${needed}`, met }
}

export function atMost (measured: number, needed: number, unit = ''): Verdict {
  const met = measured <= needed ? 'yes' : 'no'
  return { measured: figure(measured) + unit, needed: `at most ${needed}${unit}`, met }
}

export function holds (fact: boolean): Verdict {
  return { measured: fact ? 'yes' : 'no', needed: 'yes', met: fact ? 'yes' : 'no' }
}

/** A number with three significant digits, such as 48,200, 9.31 or 0.041; empty for `undefined`. */
export function figure (value = NaN) {
  if (Number.isNaN(value)) return ''
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

export const median = (values: number[]) => percentile(values, 50)

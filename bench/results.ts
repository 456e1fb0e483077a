import { percentile } from '../test/statistics.ts'

/** Responses a second, their latency in ms, the server's CPU seconds for 1,000 of them, and its peak memory in MB. */
export interface Figures {
  rate: number
  p50?: number
  p99?: number
  cpu?: number
  peak?: number
}

/** What was measured of a case. */
export interface Measure extends Figures {
  case: string
  /** The service, a baseline or an alternative. */
  of: string
  /** The rate of each turn, where several had turns. */
  rates?: (number | undefined)[]
}

/** Whether a figure is as it has to be. */
export interface Verdict {
  measured: string
  needed: string
  met: 'yes' | 'yes (within a tenth)' | 'no'
}

const TITLES = ['Case', 'Of', 'Requests/s', 'p50 ms', 'p99 ms', 'CPU s/1,000', 'Peak MB']

/** Everything that a run of the benchmark finds out. */
export class Results {
  readonly measures: Measure[] = []
  /** By their names: the verdict on the service with its defaults, and for some also with LOG_LEVEL=warn. */
  readonly goals: Record<string, Verdict[]> = {}
  /** What failed; any of it fails the run. */
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

  /** The rate of one by that of another: the middle one of the ratios of all turns that both had. */
  ratio (name: string, of: string, other: string) {
    const [rates, others] = [of, other].map(of => this.find(name, of)?.rates ?? [])
    return median(rates!.map((rate, turn) => rate! / others![turn]!))
  }
}

function printLine ([name, of, ...figures]: string[]) {
  console.log(name!.padEnd(54), of!.padEnd(31), ...figures.map(text => text.padStart(11)))
}

/** Speed: a miss by less than a tenth is met, for machines vary by that. */
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

/** A number with three significant digits, such as 48,200, 9.31 or 0.041; empty where there is none. */
export function figure (value = NaN) {
  if (Number.isNaN(value)) return ''
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

export const median = (values: number[]) => percentile(values, 50)

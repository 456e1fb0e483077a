import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { BLOG, EVENTS, EVENTS_WHILE_WRITING, LISTS, LOGIN, READS, WRITES } from './cases.ts'
import { drawChart } from './chart.ts'
import { ARGON2, HTTP, PLAIN_INSERT } from './floors.ts'
import type { Goal } from './goals.ts'
import { type Machine, machineLine } from './machine.ts'
import type { Findings } from './measure.ts'
import { script, source } from './paths.ts'
import { EXPRESS, FASTIFY } from './peers.ts'
import { SERVICE } from './service.ts'
import { figure } from './tables.ts'

/** When and where a run took place. */
export interface Run {
  date: string
  minutes: number
  machine: Machine
}

/** Writes results.json, results.md and chart.svg; tells where. */
export async function writeReport (findings: Findings, goals: Goal[], run: Run) {
  const directory = findings.options.complete ? source('') : script('bench/')
  await mkdir(directory, { recursive: true })
  const { seconds, quick } = findings.options
  const results = {
    ...run, seconds, quick, goals, problems: findings.problems, facts: findings.facts, measures: findings.measures,
  }
  await writeFile(join(directory, 'results.json'), JSON.stringify(results, roundNumbers, 2) + '\n')
  await writeFile(join(directory, 'results.md'), markdown(findings, goals, run))
  await writeFile(join(directory, 'chart.svg'), drawChart(comparisons(findings), run))
  return directory
}

function roundNumbers (_key: string, value: unknown) {
  return typeof value === 'number' ? Number(value.toPrecision(5)) : value
}

/** Answers a second of one case over 64 connections, of all who have it. */
export interface Comparison {
  name: string
  service?: number
  floor?: number
  fastify?: number
  express?: number
}

/** The cases of the chart and of the table. */
function comparisons (findings: Findings): Comparison[] {
  const rate = (name: string, target: string) => findings.find(name, target)?.rate
  const floors = [HTTP, PLAIN_INSERT, ...Object.values(ARGON2)]
  const operations = [EVENTS, EVENTS_WHILE_WRITING, ...LISTS, BLOG, ...READS, ...WRITES, LOGIN]
  return [...new Set(operations.map(({ name }) => name))].map(name => ({
    name,
    service: rate(name, SERVICE),
    floor: floors.flatMap(floor => rate(name, floor) ?? []).toSorted((a, b) => b - a)[0],
    fastify: rate(name, FASTIFY),
    express: rate(name, EXPRESS),
  })).filter(({ service }) => service !== undefined)
}

function markdown (findings: Findings, goals: Goal[], { date, minutes, machine }: Run) {
  const row = (...cells: string[]) => `| ${cells.join(' | ')} |`
  return [
    row('Goal', 'Measured', 'Needed', 'Reached'),
    row('---', '---', '---', '---'),
    ...goals.map(({ goal, measured, needed, reached }) => row(goal, measured, needed, verdict(reached))),
    '',
    row('Requests/s over 64 connections', 'Service', 'Floor', 'Fastify + pg', 'Express + Prisma'),
    row('---', '--:', '--:', '--:', '--:'),
    ...comparisons(findings).map(({ name, service, floor, fastify, express }) => {
      return row(name, ...[service, floor, fastify, express].map(figure))
    }),
    '',
    `Measured on ${date} in ${minutes.toFixed(0)} minutes: ${machineLine(machine)}.`,
    '',
  ].join('\n')
}

export function verdict (reached: boolean | undefined) {
  return reached === undefined ? '' : reached ? 'yes' : '**no**'
}

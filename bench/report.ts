import { mkdir, readFile, writeFile } from 'node:fs/promises'
import os from 'node:os'

import {
  ARGON2, BESIDE_EMAILS, BESIDE_LISTENERS, BESIDE_TOLD_LISTENERS, CASES, EXPRESS, HTTP, PGBENCH, REGISTER_FOR_DRAW,
  TRACED, UNTRACED, WITHOUT_DRAW, WITHOUT_EMAILS, WITHOUT_LISTENERS,
} from './cases.ts'
import { drawChart } from './chart.ts'
import { SERVICE, SERVICE_WARN } from './fixture.ts'
import { figure, type Results, type Verdict } from './results.ts'

/** The columns of the table of rates and the bars of the chart. A case has one baseline at most. */
const SERIES = {
  Service: [SERVICE],
  'Service, LOG_LEVEL=warn': [SERVICE_WARN],
  Baseline: [HTTP, PGBENCH, ARGON2, UNTRACED, WITHOUT_DRAW, WITHOUT_EMAILS, WITHOUT_LISTENERS],
  [EXPRESS]: [EXPRESS],
}

/** Writes results.json, results.md and chart.svg into a folder, and prints the goals. */
export async function writeReport (results: Results, folder: string, milliseconds: number, postgres: string) {
  const { measures, goals, problems } = results
  const minutes = milliseconds / 60_000
  const date = new Date().toISOString().slice(0, 10)
  const system = /^PRETTY_NAME="(.*)"$/m.exec(await readFile('/etc/os-release', 'utf8'))?.[1]
  const cpu = `${os.cpus()[0]?.model.trim()}, ${os.availableParallelism()} cores`
  const machine = `${cpu}, ${Math.round(os.totalmem() / 2 ** 30)} GiB; ${system}, Linux ${os.release()}; ` +
    `Node.js ${process.versions.node}, PostgreSQL ${postgres}`

  const cases = [...CASES, REGISTER_FOR_DRAW, ...TRACED, BESIDE_EMAILS, BESIDE_LISTENERS, BESIDE_TOLD_LISTENERS]
  const rates = cases.flatMap(({ name }) => {
    const service = results.find(name, SERVICE)
    const rates = Object.values(SERIES).map(of => of.flatMap(of => results.find(name, of)?.rate ?? [])[0])
    return service ? [{ name, rates, p99: service.p99, cpu: service.cpu! * 1000 }] : []
  })

  const verdict = ({ measured, needed, met }: Verdict) => [measured, needed, met === 'no' ? '**no**' : met]
  const goalTable = toTable([
    ['Goal', 'Defaults', 'Needed', 'Met', 'LOG_LEVEL=warn', 'Needed', 'Met'],
    ...Object.entries(goals).map(([goal, verdicts]) => [goal, ...verdicts.flatMap(verdict), '', '', ''].slice(0, 7)),
  ])
  const rateTable = toTable([
    ['Requests/s over 64 connections', ...Object.keys(SERIES), 'Service: p99 ms', 'CPU µs per request'],
    ...rates.map(({ name, rates, p99, cpu }) => [name, ...[...rates, p99, cpu].map(figure)]),
  ])
  const compared = rates.filter(({ rates: [, , ...others] }) => others.some(Boolean))
  const measured = `Measured on ${date} in ${minutes.toFixed(1)} minutes: ${machine}.`
  const round = (_key: string, value: unknown) => typeof value === 'number' ? Number(value.toPrecision(5)) : value
  const json = JSON.stringify({ date, minutes, machine, goals, problems, measures }, round, 2)

  await mkdir(folder, { recursive: true })
  await writeFile(`${folder}results.json`, json + '\n')
  await writeFile(`${folder}results.md`, `${goalTable}\n\n${rateTable}\n\n${measured}\n`)
  await writeFile(`${folder}chart.svg`, drawChart(compared, Object.keys(SERIES), `${cpu}, ${date}`))
  console.log(`\n${goalTable}\n\n${measured}\nSee ${folder}`)
}

function toTable ([header, ...rows]: string[][]) {
  const lines = [header!, header!.map((_title, n) => n === 0 ? '---' : '--:'), ...rows]
  return lines.map(cells => `| ${cells.join(' | ')} |`).join('\n')
}

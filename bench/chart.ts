import type { Comparison, Run } from './report.ts'
import { figure } from './tables.ts'

const SERIES = [
  ['service', 'this service'],
  ['floor', 'the floor: node:http with the same bytes, pgbench, argon2'],
  ['fastify', 'Fastify + pg'],
  ['express', 'Express + Prisma'],
] as const

const WIDTH = 860
const LEFT = 250
const RIGHT = 76
const TOP = 112
const BAR = 11
const GAP = 2
const BETWEEN = 16

/** Its own background, so that it can be read on a page of any colour; the reader's system chooses light or dark. */
const STYLE = `
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .title { font-size: 17px; font-weight: 600 }
  .faint { fill: #59636e }
  .value { font-size: 11px; font-variant-numeric: tabular-nums }
  .paper { fill: #ffffff; stroke: #d1d9e0 }
  .axis { stroke: #d1d9e0 }
  .service { fill: #0969da } .floor { fill: #afb8c1 } .fastify { fill: #1a7f64 } .express { fill: #bc4c00 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .faint { fill: #9198a1 }
    .paper { fill: #0d1117; stroke: #3d444d }
    .axis { stroke: #3d444d }
    .service { fill: #4493f8 } .floor { fill: #656c76 } .fastify { fill: #3fb68b } .express { fill: #f0883e }
  }`

/** Draws a bar for everybody who has a case; each case has its own scale, for they differ a hundredfold. */
export function drawChart (comparisons: Comparison[], { date, machine }: Run) {
  const shown = comparisons.filter(({ floor, fastify }) => floor !== undefined || fastify !== undefined)
  const parts: string[] = []
  let y = TOP
  for (const comparison of shown) {
    const bars = SERIES.flatMap(([series]) => {
      const value = comparison[series]
      return value === undefined ? [] : [{ series, value }]
    })
    const most = Math.max(...bars.map(({ value }) => value))
    const height = bars.length * (BAR + GAP) - GAP
    parts.push(`<text x="${LEFT - 12}" y="${y + height / 2 + 4}" text-anchor="end">${escape(comparison.name)}</text>`)
    bars.forEach(({ series, value }, n) => {
      const top = y + n * (BAR + GAP)
      const length = Math.max(1, value / most * (WIDTH - LEFT - RIGHT))
      parts.push(
        `<rect class="${series}" x="${LEFT}" y="${top}" width="${length.toFixed(1)}" height="${BAR}" rx="2"/>`,
        `<text class="value" x="${(LEFT + length + 6).toFixed(1)}" y="${top + BAR - 1.5}">${figure(value)}</text>`
      )
    })
    y += height + BETWEEN
  }

  let x = 24
  const legend = SERIES.map(([series, name]) => {
    const entry = `<rect class="${series}" x="${x}" y="76" width="12" height="12" rx="2"/>` +
      `<text x="${x + 18}" y="86.5">${name}</text>`
    x += 44 + name.length * 6.1
    return entry
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y + 8}" width="${WIDTH}" height="${y + 8}"
  role="img" aria-label="Requests a second over 64 connections, this service beside floors and peers">
<style>${STYLE}
</style>
<rect class="paper" x="0.5" y="0.5" width="${WIDTH - 1}" height="${y + 7}" rx="8"/>
<text class="title" x="24" y="32">Requests a second over 64 connections</text>
<text class="faint" x="24" y="53">${
  escape(`${machine.cpu}, ${machine.cores} cores, ${date}; every case has its own scale`)
}</text>
${legend.join('\n')}
<line class="axis" x1="${LEFT}" y1="${TOP - 6}" x2="${LEFT}" y2="${y - BETWEEN + 6}"/>
${parts.join('\n')}
</svg>
`
}

function escape (text: string) {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;')
}

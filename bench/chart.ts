import { figure } from './results.ts'

/** The rates of a case, by series. */
interface Group {
  name: string
  rates: (number | undefined)[]
}

const WIDTH = 860
const LEFT = 210
const LONGEST = 580
const BAR = 13

/** The background is opaque, so that the chart is readable on any page, in light and dark mode. */
const STYLE = `
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .title { font-size: 17px; font-weight: 600 }
  .faint { fill: #59636e }
  .value { font-size: 11px; font-variant-numeric: tabular-nums }
  .paper { fill: #ffffff; stroke: #d1d9e0 }
  .s0 { fill: #0969da } .s1 { fill: #80b5f0 } .s2 { fill: #afb8c1 } .s3 { fill: #1a7f64 } .s4 { fill: #bc4c00 }
  .s5 { fill: #8250df }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .faint { fill: #9198a1 }
    .paper { fill: #0d1117; stroke: #3d444d }
    .s0 { fill: #4493f8 } .s1 { fill: #2a5b9c } .s2 { fill: #656c76 } .s3 { fill: #3fb68b } .s4 { fill: #f0883e }
    .s5 { fill: #a371f7 }
  }`

/** Draws a bar chart. Each case has its own scale, because the rates differ a hundredfold. */
export function drawChart (groups: Group[], series: string[], subtitle: string) {
  const bar = (n: number, x: number, y: number, width: number) => {
    return `<rect class="s${n}" x="${x}" y="${y}" width="${width}" height="${BAR - 2}" rx="2"/>`
  }
  const text = (x: number, y: number, content: string, attributes = '') => {
    return `<text x="${x}" y="${y}" ${attributes}>${content}</text>`
  }

  const parts: string[] = []
  let x = 24
  for (const [n, title] of series.entries()) {
    parts.push(bar(n, x, 76, BAR - 2), text(x + 18, 86, title))
    x += 44 + title.length * 6.4
  }
  let y = 112
  for (const { name, rates } of groups) {
    const bars = rates.flatMap((rate, n) => rate === undefined ? [] : [{ n, rate }])
    const most = Math.max(...bars.map(({ rate }) => rate))
    parts.push(text(LEFT - 12, y + bars.length * BAR / 2 + 3, name, 'text-anchor="end"'))
    for (const { n, rate } of bars) {
      const width = Math.ceil(rate / most * LONGEST)
      parts.push(bar(n, LEFT, y, width), text(LEFT + width + 6, y + 9.5, figure(rate), 'class="value"'))
      y += BAR
    }
    y += 14
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y + 8}" width="${WIDTH}" height="${y + 8}"
  role="img" aria-label="Requests a second over 64 connections: the service, baselines and an alternative">
<style>${STYLE}
</style>
<rect class="paper" x="0.5" y="0.5" width="${WIDTH - 1}" height="${y + 7}" rx="8"/>
${text(24, 32, 'Requests a second over 64 connections', 'class="title"')}
${text(24, 53, `${subtitle}; each case has its own scale`, 'class="faint"')}
${parts.join('\n')}
</svg>
`
}

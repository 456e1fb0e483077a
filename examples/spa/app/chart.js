// SVG charts of one series, each with a table of its numbers for screen readers.
import { h, svg } from './dom.js'
import { table } from './parts.js'

/** Thickness of a bar, in units of the drawing. */
const THICKNESS = 12

/** @typedef {{ label: string, short?: string, value: number }} Point */

/**
 * Draws horizontal bars, with the label above and the value at the end.
 *
 * @param {string} title
 * @param {[thing: string, number: string]} names
 * @param {Point[]} points
 */
export function bars (title, names, points) {
  const [width, row] = [400, 40]
  const room = 12 + 10 * Math.max(...points.map(({ value }) => String(value).length))
  const scale = (width - room) / Math.max(1, ...points.map(({ value }) => value))
  const drawing = svg('svg', { viewBox: `0 0 ${width} ${points.length * row}`, 'aria-hidden': 'true' })
  for (const [place, { label, value }] of points.entries()) {
    const y = place * row
    drawing.append(
      // HTML, because SVG does not cut long texts.
      svg('foreignObject', { x: 0, y, width, height: 18 }, h('div', { class: 'name' }, label)),
      svg('path', { d: bar(y + 20, value * scale), class: 'mark' }),
      svg('text', { x: value * scale + 7, y: y + 30.5, class: 'number' }, value))
  }
  return figure(title, names, points, drawing)
}

/**
 * Draws vertical columns for values over time.
 *
 * @param {string} title
 * @param {[thing: string, number: string]} names
 * @param {Point[]} points
 */
export function columns (title, names, points) {
  const [width, height, foot, head] = [400, 220, 24, 20]
  const step = width / points.length
  const scale = (height - foot - head) / Math.max(1, ...points.map(({ value }) => value))
  // Some languages have long names for months, so that there is room for every second one.
  const every = Math.ceil(Math.max(...points.map(({ label, short = label }) => short.length)) / 5)
  const drawing = svg('svg', { viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true' })
  drawing.append(svg('path', { d: `M0 ${height - foot}h${width}`, class: 'axis' }))
  for (const [place, { label, short = label, value }] of points.entries()) {
    const middle = (place + 0.5) * step
    const top = height - foot - value * scale
    const d = column(middle - step * 0.3, height - foot, step * 0.6, value * scale)
    drawing.append(
      svg('path', { d, class: 'mark' }, svg('title', {}, `${label}: ${value}`)),
      svg('text', { x: middle, y: height - 7, class: 'tick' }, (points.length - 1 - place) % every === 0 && short))
    if (value > 0) drawing.append(svg('text', { x: middle, y: top - 6, class: 'number middle' }, value))
  }
  return figure(title, names, points, drawing)
}

/**
 * Path of a bar to the right with a rounded end.
 *
 * @param {number} y
 * @param {number} length
 */
function bar (y, length) {
  const r = Math.min(4, length)
  const end = `a${r} ${r} 0 0 1 ${r} ${r}v${THICKNESS - 2 * r}a${r} ${r} 0 0 1 ${-r} ${r}`
  return `M0 ${y}h${length - r}${end}h${r - length}z`
}

/**
 * Path of a column upwards with a rounded top.
 *
 * @param {number} x
 * @param {number} foot
 * @param {number} width
 * @param {number} length
 */
function column (x, foot, width, length) {
  const r = Math.min(4, length)
  const head = `a${r} ${r} 0 0 1 ${r} ${-r}h${width - 2 * r}a${r} ${r} 0 0 1 ${r} ${r}`
  return `M${x} ${foot}v${r - length}${head}v${length - r}z`
}

/**
 * @param {string} title
 * @param {[string, string]} names
 * @param {Point[]} points
 * @param {Element} drawing
 */
function figure (title, names, points, drawing) {
  return h('figure', { class: 'chart' },
    h('figcaption', {}, h('h2', {}, title)),
    drawing,
    h('details', {}, h('summary', {}, 'Show the numbers'),
      table(title, names, points.map(({ label, value }) => [label, value]))))
}

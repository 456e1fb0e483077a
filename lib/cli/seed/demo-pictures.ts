// The pictures of the demo community: drawings of a few hundred bytes as `data:` URLs. They load in any app, on any
// origin, without the internet and without the URL of the service.

import { FACES, SCENES } from './demo-data.ts'

/** Draws the picture of a club or, as a variant with permuted colours, of one of its events or posts. */
export function scene (club: string, variant = 0) {
  const [[ground, ...colours], paths] = SCENES[club]!
  return draw(16, 9, ground!, paths.map((d, index) => path(colours[(index + variant) % 3]!, d)))
}

/** Draws a person. */
export function portrait (number: number) {
  const [hair, clothes, skin, ground] = FACES[number % FACES.length]!
  return draw(8, 8, ground!, [
    path(clothes!, 'M1 8c0-3 6-3 6 0z'),
    path(skin!, 'M4 1.5c2.5 0 2 4 0 4s-2.5-4 0-4z'),
    path(hair!, number % 2 ? 'M2 3c0-3 4-3 4 0-1-1-3-1-4 0z' : 'M1.8 5c0-5 4.4-5 4.4 0C5.5 4 6 3 4 3S2.5 4 1.8 5z'),
  ])
}

const path = (colour: string, d: string) => `<path fill="#${colour}" d="${d}"/>`

/** Encodes a drawing as a URL that also works in `srcset` and in `url()` of a style. */
function draw (width: number, height: number, ground: string, paths: string[]) {
  const start = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}">`
  const svg = [start, path(ground, `M0 0h${width}v${height}H0z`), ...paths, '</svg>'].join('')
  return `data:image/svg+xml,${encodeURIComponent(svg)}`
}

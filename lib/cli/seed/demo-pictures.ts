// The pictures of the demo community: drawings of a few hundred bytes as `data:` URLs. They load in any app, on any
// origin, without the internet and without the URL of the service.

/** The colours of background, shape, detail and light for each club, and the paths drawn with the last three. */
const SCENES: Record<string, [colours: string[], paths: string[]]> = {
  'Robotics Workshop': [['dfe9ee', '37657a', 'e08e45', 'f7f3e8'], [
    'M5 3h6v4H5zM7 8h2v1H7zM7.8 1.5h.4V3h-.4zM4 4h.6v2H4zM11.4 4h.6v2h-.6z', 'M7.5 1h1v.8h-1zM6.5 5.8h3v.4h-3z',
    'M6 4h1.2v1H6zM8.8 4H10v1H8.8z',
  ]],
  'Film Society': [['2b2a3a', 'f4efe4', 'e3b04b', '6d6a8f'], [
    'M3 1h10v5H3z', 'M7 2.2l3 1.3-3 1.3z', 'M0 9c0-3 4-3 4 0 0-3 4-3 4 0 0-3 4-3 4 0 0-3 4-3 4 0z',
  ]],
  'Hill Walkers': [['cfe4ee', '4f7f63', '2f5546', 'f4c95d'], [
    'M0 7l4-4 4 4 3-2 5 3v1H0z', 'M0 9l6-3 4 2 6-2v3z', 'M12 1.2a1.3 1.3 0 0 1 0 2.6 1.3 1.3 0 0 1 0-2.6z',
  ]],
  'Language Café': [['f3e6d8', 'b4573f', '4d7c7a', 'fbf7ef'], [
    'M2 1.5h6v3.5H5L3.5 6.5V5H2z', 'M9 3.5h5V7h-1.5v1.3L11 7H9z',
    'M3 2.6h4v.5H3zM3 3.6h3v.5H3zM10 5h3v.5h-3z',
  ]],
  'Kitchen Garden': [['e9f0d9', '5c8a3a', '7a5537', 'e36f47'], [
    'M7.8 3h.4v4h-.4zM8 5C5 5 5 3 5 2.5 7 2.5 8 3 8 5zM8 4.5c0-2 2-3 3.5-3 0 2-1 3-3.5 3z', 'M0 7h16v2H0z',
    'M3 6.2h1.4L3.7 8.5zM12 6.2h1.4l-.7 2.3z',
  ]],
}

/** Colours of hair, clothes, skin and background for people. */
const PEOPLE = [
  ['2b2118', '37657a', '8d5a3b', 'dfe9ee'], ['5a3a22', 'b4573f', 'e8b98f', 'f3e6d8'],
  ['1d1d26', '5c8a3a', 'c98b5e', 'e9f0d9'], ['a8702f', '494763', 'f0c9a4', 'e4e1ef'],
  ['8a8a8a', '2f5546', 'b97a50', 'cfe4ee'],
]

/** Draws the picture of a club or, as a variant with permuted colours, of one of its events or posts. */
export function scene (club: string, variant = 0) {
  const [[ground, ...colours], paths] = SCENES[club]!
  return draw(16, 9, ground!, paths.map((d, index) => path(colours[(index + variant) % 3]!, d)))
}

/** Draws a person. */
export function portrait (number: number) {
  const [hair, clothes, skin, ground] = PEOPLE[number % PEOPLE.length]!
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

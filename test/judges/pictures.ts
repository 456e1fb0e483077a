// Converted pictures, as ExifTool, webpinfo, ImageMagick and Chromium read them, and files that are to be refused.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { Page } from 'playwright-core'

import { convertPicture } from '#lib/pictures/convert.js'
import { launch } from '../chromium.ts'
import { findVersion, type Judge, run, type Setting } from './judge.ts'
import { attacks, bombs, type Files, photos, polyglots, samples } from './picture-files.ts'

/** Groups of tags that ExifTool makes of every WebP file. */
const TECHNICAL = ['ExifTool', 'File', 'RIFF', 'Composite']

/** How much more memory the files that are refused may take, in MB. */
const MAX_GROWTH = 50

/** How long a conversion may take, in seconds. */
const MAX_SECONDS = 10

/** Maximum average difference of the colors from the original, of 255. */
const MAX_DIFFERENCE = 10

/** Chromium closes the connection after a larger message, in bytes. */
const MAX_SHOWN = 50e6

/** The first bytes of formats that are taken. */
const TAKEN = /^(\xff\xd8\xff|\x89PNG|RIFF....WEBP)/s

/**
 * Converts pictures in all formats, with all metadata that ExifTool can write, and the files in the folder SAMPLES.
 * Lets programs read the results, and compares them with the originals as Chromium shows them.
 */
export const pictures: Judge = {
  program: 'exiftool',
  install: 'apt-get install libimage-exiftool-perl webp imagemagick chromium',
  version: async setting => findVersion((await run(setting, 'exiftool', ['-ver'])).stdout),

  async run (setting) {
    const browser = await launch(setting.scope)
    const page = await browser.newPage()
    const findings: string[] = []

    const [refused, tolerated] = [await attacks(), await bombs()]
    const memory = () => process.resourceUsage().maxRSS / 1024
    const before = memory()
    for (const [files, isTolerated] of [[refused, false], [tolerated, true]] as const) {
      for (const [name, file] of Object.entries(files)) {
        const { status, seconds } = await convert(file)
        if (![400, 413, 415].includes(status) && !(isTolerated && status === 201)) findings.push(`${name}: ${status}`)
        if (seconds > MAX_SECONDS) findings.push(`${name} took ${Math.round(seconds)} s`)
        const grown = Math.round(memory() - before)
        if (grown > MAX_GROWTH) findings.push(`after ${name}, the attacks have taken ${grown} MB`)
      }
    }

    const outputs = join(setting.directory, 'outputs')
    await mkdir(outputs)
    const names = new Map<string, string>()
    const disputed: string[] = []
    let [taken, sampled] = [0, 0]
    for await (const [name, file, isSample] of all({ ...await photos(setting), ...await polyglots() })) {
      const original = file.length < MAX_SHOWN ? await show(page, file) : undefined
      const { status, picture } = await convert(file)
      if (!picture) {
        const isTaken = TAKEN.test(file.toString('latin1', 0, 20))
        if (![400, 413, 415].includes(status) || !isSample || (isTaken && status === 415)) {
          findings.push(`${name}: ${status}`)
        } else if (original && isTaken) {
          // Chromium shows the beginning of damaged files.
          disputed.push(`${name}: ${status}`)
        }
        continue
      }
      taken++
      if (isSample) sampled++
      for (const width of ['large', 'small'] as const) {
        const output = `${taken}-${width}.webp`
        names.set(output, `${name}, ${width}`)
        await writeFile(join(outputs, output), picture[width])
        const shown = await show(page, picture[width])
        if (!shown) findings.push(`${name}, ${width}: Chromium does not show it`)
        else if (width === 'large' && (shown.width !== picture.width || shown.height !== picture.height)) {
          findings.push(`${name} has ${shown.width} × ${shown.height} pixels in Chromium`)
        } else if (original && !(isTurned(original, picture) && isWebP(file))) {
          const difference = distance(original, shown)
          if (difference > MAX_DIFFERENCE) findings.push(`${name}, ${width} differs by ${Math.round(difference)}`)
        }
      }
    }
    for (const [output, finding] of await read(setting, outputs, [...names.keys()])) {
      findings.push(`${names.get(output)}: ${finding}`)
    }
    const count = Object.keys({ ...refused, ...tolerated }).length
    for (const refusal of disputed) console.log(`  Chromium shows ${refusal}`)
    return { subject: `${taken} pictures with ${sampled} samples, and ${count} attacks`, findings }
  },
}

async function * all (files: Files) {
  for (const [name, file] of Object.entries(files)) yield [name, file, false] as const
  for await (const [name, file] of samples()) yield [name, file, true] as const
}

/** Converts a file. Returns the status of an upload and, with 201, the picture. */
async function convert (file: Buffer) {
  const start = performance.now()
  const seconds = () => (performance.now() - start) / 1000
  try {
    const picture = await convertPicture(file, 1)
    return { status: 201, seconds: seconds(), picture }
  } catch (error) {
    const { statusCode } = error as { statusCode?: number }
    if (!statusCode) throw error
    return { status: statusCode, seconds: seconds() }
  }
}

interface Size {
  width: number
  height: number
}

interface Shown extends Size {
  /** Colors of the picture scaled to 8 × 8 pixels, on white. */
  pixels: number[]
}

/** Has Chromium decode a picture. Returns `undefined` if it cannot. */
function show (page: Page, file: Buffer) {
  return page.evaluate<Shown | undefined, string>(async base64 => {
    const { atob, Blob, createImageBitmap, OffscreenCanvas } = globalThis as any
    const bytes = Uint8Array.from(atob(base64), (letter: string) => letter.charCodeAt(0))
    const image = await createImageBitmap(new Blob([bytes])).catch(() => undefined)
    if (!image) return undefined
    const context = new OffscreenCanvas(8, 8).getContext('2d')
    context.imageSmoothingQuality = 'high'
    context.fillStyle = 'white'
    context.fillRect(0, 0, 8, 8)
    context.drawImage(image, 0, 0, 8, 8)
    return { width: image.width, height: image.height, pixels: [...context.getImageData(0, 0, 8, 8).data] }
  }, file.toString('base64'))
}

const distance = (one: Shown, other: Shown) =>
  one.pixels.reduce((sum, value, n) => sum + Math.abs(value - other.pixels[n]!), 0) / one.pixels.length

const isTurned = (one: Size, other: Size) => (one.width > one.height) !== (other.width > other.height)

/** Chromium does not turn WebP upright. */
const isWebP = (file: Buffer) => file.toString('latin1', 8, 12) === 'WEBP'

/** What the programs find wrong with converted pictures, by file. */
async function read (setting: Setting, folder: string, files: string[]) {
  const paths = files.map(file => join(folder, file))
  const findings: [file: string, finding: string][] = []
  const tags = JSON.parse((await run(setting, 'exiftool', ['-j', '-G', '-a', '-u', ...paths])).stdout) as object[]
  const [infos, identified] = [await run(setting, 'webpinfo', paths), await run(setting, 'identify', paths)]
  for (const [n, file] of files.entries()) {
    const others = Object.keys(tags[n]!).filter(tag => tag.includes(':') && !TECHNICAL.includes(tag.split(':')[0]!))
    findings.push(...others.map(tag => [file, tag] as [string, string]))
    const info = infos.stdout.split('File: ').find(part => part.startsWith(paths[n]!)) ?? 'webpinfo does not read it'
    if (!info.includes('No error detected')) findings.push([file, info])
    if (!identified.stdout.includes(`${paths[n]} WEBP`)) findings.push([file, 'ImageMagick does not read it'])
  }
  return findings
}

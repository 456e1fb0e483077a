// Pictures and attacks for the judge of pictures.
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { crc32, createDeflate } from 'node:zlib'

import sharp from 'sharp'

import { run, type Setting } from './judge.ts'

export type Files = Record<string, Buffer>

/** What a camera, an editor and a person put into a photo. */
const TAGS = [
  '-GPSLatitude=51.5', '-GPSLongitude=0.1', '-Artist=Ada Lovelace', '-SerialNumber=4711', '-XMP:Creator=Ada Lovelace',
  '-IPTC:By-line=Ada Lovelace', '-Comment=Ada Lovelace', '-Orientation#=6',
]

const FORMATS = ['jpeg', 'png', 'webp'] as const

const PAGE = Buffer.from('<html><script>alert(1)</script>')

/** A picture whose colors tell whether it is upright. */
const base = () => sharp({ create: { width: 600, height: 400, channels: 3, background: 'teal' } })
  .composite([{ input: { create: { width: 600, height: 100, channels: 3, background: 'gold' } }, gravity: 'north' }])
  .withIccProfile('p3')

const flat = (side: number) => sharp({ create: { width: side, height: side, channels: 3, background: 'teal' } })

/** Pictures with all metadata that ExifTool can write. */
export async function photos (setting: Setting) {
  const files: Files = {}
  for (const format of FORMATS) {
    const path = join(setting.directory, `photo.${format}`)
    await writeFile(path, await base().toFormat(format).toBuffer())
    await run(setting, 'exiftool', ['-overwrite_original', ...TAGS, path])
    files[`${format} with metadata`] = await readFile(path)
  }
  return files
}

/** Pictures with other content in the file, which must not reach the result. */
export async function polyglots (): Promise<Files> {
  const jpeg = await base().jpeg().toBuffer()
  const comment = (text: Buffer) => Buffer.concat([Buffer.from([0xff, 0xfe, ...twoBytes(text.length + 2)]), text])
  const commented = (comments: Buffer[]) => Buffer.concat([jpeg.subarray(0, 2), ...comments, jpeg.subarray(2)])
  return {
    'a page behind a picture': Buffer.concat([jpeg, PAGE]),
    'a page in a comment': commented([comment(PAGE)]),
    'an archive behind a picture': Buffer.concat([jpeg, Buffer.from('PK\x03\x04')]),
    'comments of 100 MB': commented(Array(1600).fill(comment(Buffer.alloc(65_533, 'x')))),
  }
}

const twoBytes = (number: number) => [number >> 8, number & 255]

/** Files that the service must refuse without much memory. */
export async function attacks (): Promise<Files> {
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>alert(1)</script></svg>')
  const files: Files = {
    'a PNG of 64,250 pixels square': png(64_250, ['IDAT', await deflated(64_250 * 8033)]),
    'a WebP of 16,383 pixels square': await largeWebp(16_383),
    SVG: svg,
    'SVG before a JPEG': Buffer.concat([svg, await base().jpeg().toBuffer()]),
    'a page before a JPEG': Buffer.concat([PAGE, await base().jpeg().toBuffer()]),
    GIF: await base().gif().toBuffer(),
    TIFF: await base().tiff().toBuffer(),
    AVIF: await base().avif().toBuffer(),
    PDF: Buffer.from('%PDF-1.7\n'),
    'a script of ImageMagick': Buffer.from('push graphic-context\nimage over 0,0 0,0 "https://example.org/x"\n'),
  }
  for (const format of FORMATS) {
    for (const progressive of format === 'webp' ? [false] : [false, true]) {
      const file = await base().toFormat(format, { progressive }).toBuffer()
      files[`half a ${progressive ? 'progressive ' : ''}${format}`] = file.subarray(0, file.length / 2)
    }
  }
  return files
}

/** Files that the service may take or refuse, without much memory or time. */
export async function bombs (): Promise<Files> {
  const gigabyte = await deflated(1e9)
  const pixels: [string, Buffer] = ['IDAT', await deflated(9 * 3)]
  const named = (name: string) => Buffer.concat([Buffer.from(`${name}\0\0`), gigabyte])
  return {
    'a PNG with a text of 1 GB': png(9, ['zTXt', named('Comment')], pixels),
    'a PNG with a color profile of 1 GB': png(9, ['iCCP', named('icc')], pixels),
    'a JPEG of 3,000 scans': await manyScans(3000),
  }
}

/** A PNG of one bit per pixel with these chunks. */
function png (side: number, ...chunks: [type: string, data: Buffer][]) {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(side, 0)
  header.writeUInt32BE(side, 4)
  header.writeUInt8(1, 8)
  const all: typeof chunks = [['IHDR', header], ...chunks, ['IEND', Buffer.alloc(0)]]
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), ...all.flatMap(([type, data]) => {
    const [length, sum, content] = [Buffer.alloc(4), Buffer.alloc(4), Buffer.concat([Buffer.from(type), data])]
    length.writeUInt32BE(data.length)
    sum.writeUInt32BE(crc32(content))
    return [length, content, sum]
  })])
}

/** A WebP whose header announces more pixels than it has. */
async function largeWebp (side: number) {
  const file = await flat(9).webp().toBuffer()
  for (const offset of [26, 28]) file.writeUInt16LE(side, offset)
  return file
}

/** Compressed zeros. */
function deflated (length: number) {
  const zeros = Buffer.alloc(1e6)
  function * write () {
    for (let rest = length; rest > 0; rest -= zeros.length) yield zeros.subarray(0, rest)
  }
  return buffer(Readable.from(write()).pipe(createDeflate()))
}

/** A progressive JPEG whose last scan is repeated. */
async function manyScans (count: number) {
  const jpeg = await flat(4000).jpeg({ progressive: true }).toBuffer()
  const [start, end] = [jpeg.lastIndexOf(Buffer.from([0xff, 0xda])), jpeg.subarray(-2)]
  const scan = jpeg.subarray(start, -2)
  return Buffer.concat([jpeg.subarray(0, start), ...Array(count).fill(scan), end])
}

/** The files in the folder SAMPLES, at most 10 MB each. */
export async function * samples () {
  const { SAMPLES } = process.env
  if (!SAMPLES) return
  for (const name of (await readdir(SAMPLES, { recursive: true })).sort()) {
    const path = join(SAMPLES, name)
    const file = await stat(path).catch(() => undefined)
    if (file?.isFile() && file.size > 0 && file.size < 10e6) yield [name, await readFile(path)] as const
  }
}

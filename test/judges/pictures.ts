// Converted pictures, as ExifTool, webpinfo and ImageMagick read them, and files that are to be refused.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'

import sharp from 'sharp'

import { convertPicture } from '#lib/pictures/convert.js'
import { findVersion, type Judge, run, type Setting } from './judge.ts'

/** Groups of tags that ExifTool makes of every WebP file. */
const TECHNICAL = ['ExifTool', 'File', 'RIFF', 'Composite']

/** What a camera, an editor and a person put into a photo. */
const TAGS = [
  '-GPSLatitude=51.5', '-GPSLongitude=0.1', '-Artist=Ada Lovelace', '-SerialNumber=4711', '-XMP:Creator=Ada Lovelace',
  '-IPTC:By-line=Ada Lovelace', '-Comment=Ada Lovelace', '-Orientation#=6',
]

/** Converts pictures in all formats, with all metadata that ExifTool can write, and lets programs read the results. */
export const pictures: Judge = {
  program: 'exiftool',
  install: 'apt-get install libimage-exiftool-perl webp imagemagick',
  version: async setting => findVersion((await run(setting, 'exiftool', ['-ver'])).stdout),

  async run (setting) {
    const findings: string[] = []
    const taken = { ...await photos(setting), ...await tolerated() }
    for (const [name, file] of Object.entries(taken)) {
      const { large, small } = await convertPicture(file, 1, () => '')
      for (const [width, output] of Object.entries({ large, small })) {
        findings.push(...(await read(setting, output)).map(finding => `${name}, ${width}: ${finding}`))
      }
    }
    const refused = await attacks()
    for (const [name, file] of Object.entries(refused)) {
      const before = process.memoryUsage.rss()
      const status = await convertPicture(file, 1, () => '').then(() => 201, error => error.statusCode)
      if (![400, 413, 415].includes(status)) findings.push(`${name}: ${status}`)
      const grown = (process.memoryUsage.rss() - before) / 1e6
      if (grown > 50) findings.push(`${name} took ${Math.round(grown)} MB`)
    }
    return { subject: `${Object.keys(taken).length} pictures and ${Object.keys(refused).length} attacks`, findings }
  },
}

/** What the programs find wrong with a converted picture. */
async function read (setting: Setting, picture: Buffer) {
  const path = join(setting.directory, 'picture.webp')
  await writeFile(path, picture)
  const tags = JSON.parse((await run(setting, 'exiftool', ['-j', '-G', '-a', '-u', path])).stdout)[0] as object
  const others = Object.keys(tags).filter(tag => tag.includes(':') && !TECHNICAL.includes(tag.split(':')[0]!))
  const [info, identified] = [await run(setting, 'webpinfo', [path]), await run(setting, 'identify', [path])]
  return [
    ...others,
    ...info.stdout.includes('No error detected') ? [] : [info.output],
    ...identified.code === 0 && identified.output.includes('WEBP') ? [] : [identified.output],
  ]
}

const base = () => sharp({ create: { width: 600, height: 400, channels: 3, background: 'teal' } }).withIccProfile('p3')

async function photos (setting: Setting) {
  const files: Record<string, Buffer> = {}
  for (const format of ['jpeg', 'png', 'webp'] as const) {
    const path = join(setting.directory, `photo.${format}`)
    await writeFile(path, await base().toFormat(format).toBuffer())
    await run(setting, 'exiftool', ['-overwrite_original', ...TAGS, path])
    files[format] = await readFile(path)
  }
  return files
}

/** Files with more in them than a picture, which does not reach the result. */
async function tolerated () {
  const jpeg = await base().jpeg().toBuffer()
  const comment = Buffer.concat([Buffer.from([0xff, 0xfe, 0xff, 0xff]), Buffer.alloc(65_533, 'x')])
  return {
    'a page behind a picture': Buffer.concat([jpeg, Buffer.from('<html><script>alert(1)</script>')]),
    'an archive behind a picture': Buffer.concat([jpeg, Buffer.from('PK\x03\x04')]),
    'comments of 100 MB': Buffer.concat([jpeg.subarray(0, 2), ...Array(1600).fill(comment), jpeg.subarray(2)]),
  }
}

async function attacks () {
  const jpeg = await base().jpeg().toBuffer()
  const png = await base().png().toBuffer()
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>alert(1)</script></svg>')
  return {
    'a PNG of 64,250 pixels square': bomb(64_250),
    'half a JPEG': jpeg.subarray(0, jpeg.length / 2),
    'half a PNG': png.subarray(0, png.length / 2),
    SVG: svg,
    'SVG before a JPEG': Buffer.concat([svg, jpeg]),
    GIF: await base().gif().toBuffer(),
    TIFF: await base().tiff().toBuffer(),
    AVIF: await base().avif().toBuffer(),
    PDF: Buffer.from('%PDF-1.7\n'),
    'a script of ImageMagick': Buffer.from('push graphic-context\nimage over 0,0 0,0 "https://example.org/x"\n'),
  }
}

/** A PNG in some KB that would be decoded to gigabytes. */
function bomb (side: number) {
  const chunk = (type: string, data: Buffer) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(data.length)
    // The sum is wrong, which is found only later than the size.
    return Buffer.concat([length, Buffer.from(type), data, Buffer.alloc(4)])
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(side, 0)
  header.writeUInt32BE(side, 4)
  header.writeUInt8(1, 8)
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'), chunk('IHDR', header), chunk('IDAT', deflateSync(Buffer.alloc(1_000_000))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

import { crc32, deflateSync } from 'node:zlib'

import sharp, { type Metadata } from 'sharp'

import { spareMemory } from '#lib/http/memory.js'
import { conversionBytes, convertPicture } from '#lib/pictures/convert.js'
import t from '../../suite.ts'

const MB = 1_000_000
const MIB = 2 ** 20

const JPEG = { format: 'jpeg', channels: 3, depth: 'uchar', chromaSubsampling: '4:2:0' } as const
const PROGRESSIVE = { ...JPEG, isProgressive: true }
const PNG = { format: 'png', channels: 3, depth: 'uchar', isProgressive: false } as const
const RGBA = { ...PNG, channels: 4, hasAlpha: true } as const
const CMYK = { ...PROGRESSIVE, channels: 4, chromaSubsampling: '4:4:4:4' } as const
const WEBP = { format: 'webp', channels: 3, depth: 'uchar' } as const

/** Headers, the megabytes that their conversion was measured to take, the estimate, and whether 256 MB suffice. */
const KINDS: [string, header: Partial<Metadata>, size: [number, number], measured: number, number, boolean][] = [
  ['photo of 12 megapixels', JPEG, [4000, 3000], 29, 36_000_000, true],
  ['photo of 40 megapixels', JPEG, [8000, 5000], 22, 30_000_000, true],
  ['progressive photo of 12 megapixels', PROGRESSIVE, [4000, 3000], 63, 90_000_000, true],
  ['progressive, 4:4:4', { ...PROGRESSIVE, chromaSubsampling: '4:4:4' }, [4000, 3000], 101, 108_000_000, false],
  ['progressive photo of 24 megapixels', PROGRESSIVE, [6000, 4000], 109, 140_000_000, false],
  ['progressive CMYK', CMYK, [4000, 4000], 168, 176_000_000, false],
  ['screenshot of a phone', PNG, [1200, 2500], 9, 38_420_000, true],
  ['screenshot of 4K with alpha', RGBA, [3840, 2160], 61, 92_238_000, true],
  ['PNG of 16,000 pixels with alpha', RGBA, [16_000, 2500], 129, 148_075_000, false],
  ['the same with 16 bits', { ...RGBA, depth: 'ushort' }, [16_000, 2500], 162, 199_275_000, false],
  ['interlaced PNG', { ...RGBA, depth: 'ushort', isProgressive: true }, [4000, 4000], 191, 256_000_000, false],
  ['WebP of 12 megapixels', WEBP, [4000, 3000], 36, 84_000_000, true],
  ['WebP of 40 megapixels', { ...WEBP, channels: 4, hasAlpha: true }, [8000, 5000], 176, 180_000_000, false],
]

t.test('The memory of a conversion follows from the header, and all kinds fit into 512 MB', async t => {
  for (const [kind, header, [width, height], measured, bytes, isSmall] of KINDS) {
    const estimate = conversionBytes({ ...header, width, height } as Metadata)
    t.equal(Math.round(estimate), bytes, kind)
    t.ok(estimate >= measured * MB, `${kind}: at least as much as measured`)
    t.equal(estimate <= spareMemory(256 * MIB), isSmall, `${kind}, 256 MB`)
    t.ok(estimate <= spareMemory(512 * MIB), `${kind}, 512 MB`)
  }
})

t.test('A picture that takes more memory than a process can spare is a 413 before it is decoded', async t => {
  const create = { width: 600, height: 400, channels: 3, background: 'red' } as const
  const jpeg = await sharp({ create }).jpeg({ progressive: true }).toBuffer()
  const needed = 240_000 * (12 + 2 * 2.25)
  await t.rejects(convertPicture(jpeg.subarray(0, jpeg.length / 2), 2 * MB, needed - 1), {
    statusCode: 413,
    message: 'A picture may have at most 2 MB and 40 megapixels, or fewer if it takes much memory. Please save it ' +
      'smaller, or as a JPEG that is not progressive',
  })
  const { width, height } = await convertPicture(jpeg, 2 * MB, needed)
  t.strictSame([width, height], [600, 400])
})

t.test('A WebP that may be lossless can have many tables', async t => {
  const create = { width: 400, height: 402, channels: 4, background: { r: 200, g: 60, b: 30, alpha: 0.5 } } as const
  const picture = () => sharp({ create })
  const header = 400 * 402 * (27 + 16)
  const tables = 100 * 101 * 5600
  const lossy = await picture().removeAlpha().webp().toBuffer()
  t.match(await convertPicture(lossy, MB, header), { width: 400 })
  for (const [kind, file] of Object.entries({
    lossless: await picture().webp({ lossless: true }).toBuffer(),
    alpha: await picture().webp({ alphaQuality: 50 }).toBuffer(),
    animation: await sharp({ create: { ...create, height: 804, pageHeight: 402 } }).webp().toBuffer(),
  })) {
    t.match(await convertPicture(file, MB, tables).catch(error => error), { statusCode: 413 }, kind)
    t.match(await convertPicture(file, MB, header + tables + 60 * file.length), { width: 400, height: 402 }, kind)
  }
})

t.test('A PNG with 16 bits keeps its colors, with and without a profile', async t => {
  const create = { width: 100, height: 100, channels: 3, background: { r: 200, g: 60, b: 30 } } as const
  for (const profile of [undefined, 'srgb', 'p3']) {
    const pixels = sharp({ create }).toColourspace('rgb16')
    const png = await (profile ? pixels.withIccProfile(profile) : pixels).png().toBuffer()
    t.match(await sharp(png).metadata(), { depth: 'ushort', hasProfile: profile !== undefined })
    const { large } = await convertPicture(png, MB)
    const { channels } = await sharp(large).stats()
    t.ok([200, 60, 30].every((value, n) => Math.abs(channels[n]!.mean - value) < 4), `${profile}`)
  }
})

/** A chunk of a PNG. */
function chunkOf (type: string, ...data: (string | Buffer)[]) {
  const content = Buffer.concat([type, ...data].map(part => Buffer.from(part)))
  const [length, sum] = [content.length - type.length, crc32(content)].map(number => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(number)
    return bytes
  })
  return Buffer.concat([length!, content, sum!])
}

t.test('A long color profile in a PNG is ignored', async t => {
  const png = await sharp({ create: { width: 2, height: 1, channels: 3, background: 'red' } })
    .withIccProfile('p3').png().toBuffer()
  const { icc } = await sharp(png).metadata()
  const long = Buffer.concat([icc!, Buffer.alloc(30_000_000)])
  long.writeUInt32BE(long.length)
  const profile = chunkOf('iCCP', 'a\0\0', deflateSync(long))
  // Before its own profile, which is then the second one.
  const before = process.resourceUsage()
  t.match(await convertPicture(Buffer.concat([png.subarray(0, 33), profile, png.subarray(33)]), MB), { width: 2 })
  t.ok(process.resourceUsage().maxRSS - before.maxRSS < 50_000, 'at most 50 MB')
})

t.test('A color profile of more than a megabyte is ignored, even if most of it is empty blocks', async t => {
  const pixels = sharp({ create: { width: 2, height: 1, channels: 3, background: { r: 200, g: 60, b: 30 } } }).png()
  const png = await pixels.toBuffer()
  const { icc } = await sharp(await pixels.withIccProfile('p3').toBuffer()).metadata()
  const compressed = deflateSync(icc!)
  const greenAfter = async (emptyBlocks: number) => {
    const blocks = Buffer.alloc(5 * emptyBlocks, Buffer.from([0, 0, 0, 0xff, 0xff]))
    const profile = chunkOf('iCCP', 'a\0\0', compressed.subarray(0, 2), blocks, compressed.subarray(2))
    const { large } = await convertPicture(Buffer.concat([png.subarray(0, 33), profile, png.subarray(33)]), MB)
    return (await sharp(large).stats()).channels[1]!.mean
  }
  // In P3, the same numbers are a different color.
  t.ok(await greenAfter(1) < 50)
  t.ok(await greenAfter(210_000) > 50)
})

t.test('Texts in a PNG take no memory', async t => {
  const png = await sharp({ create: { width: 2, height: 1, channels: 3, background: 'red' } }).png().toBuffer()
  const text = deflateSync(Buffer.alloc(7_900_000, 'x'))
  const texts = Array.from({ length: 20 }, (_, n) => [
    chunkOf('zTXt', `a${n}\0\0`, text), chunkOf('iTXt', `b${n}\0\x01\0\0\0`, text),
  ]).flat()
  // After the signature and the header.
  const file = Buffer.concat([png.subarray(0, 33), ...texts, png.subarray(33)])
  const before = process.resourceUsage()
  t.match(await convertPicture(file, MB), { width: 2, height: 1 })
  t.ok(process.resourceUsage().maxRSS - before.maxRSS < 50_000, 'at most 50 MB')
})

/** The status of a refused picture. */
const refusalOf = (file: Buffer) => convertPicture(file, MB).then(() => undefined, ({ statusCode }) => statusCode)

t.test('A PNG with too many chunks is a 413 before it is decoded', async t => {
  const png = await sharp({ create: { width: 2, height: 1, channels: 3, background: 'red' } }).png().toBuffer()
  const withTexts = (count: number) =>
    Buffer.concat([png.subarray(0, 33), Buffer.alloc(12 * count, chunkOf('tEXt')), png.subarray(33)])
  t.match(await convertPicture(withTexts(40_000), MB), { width: 2, height: 1 })
  t.equal(await refusalOf(withTexts(50_000)), 413)
})

t.test('A JPEG with too many scans or segments is a 413 before it is decoded', async t => {
  const jpeg = await sharp({ create: { width: 8, height: 8, channels: 3, background: 'red' } })
    .jpeg({ progressive: true }).toBuffer()
  const scan = jpeg.subarray(jpeg.lastIndexOf(Buffer.from('ffda', 'hex')), -2)
  const scans = Buffer.concat([jpeg.subarray(0, -2), ...Array.from({ length: 501 }, () => scan), jpeg.subarray(-2)])
  t.equal(await refusalOf(scans), 413)
  const withSegments = (marker: string, count: number) =>
    Buffer.concat([jpeg.subarray(0, 2), Buffer.alloc(4 * count, `ff${marker}0002`, 'hex'), jpeg.subarray(2)])
  for (const marker of ['e1', 'e2', 'ed']) {
    t.match(await convertPicture(withSegments(marker, 450), MB), { width: 8, height: 8 }, marker)
    t.equal(await refusalOf(withSegments(marker, 501)), 413, marker)
  }
  // libvips keeps no others.
  const before = process.resourceUsage()
  for (const marker of ['e0', 'e3', 'ee', 'fe']) {
    t.match(await convertPicture(withSegments(marker, 1_000_000), MB), { width: 8, height: 8 }, marker)
  }
  t.ok(process.resourceUsage().maxRSS - before.maxRSS < 50_000, 'at most 50 MB')
})

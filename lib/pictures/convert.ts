import { inflateSync } from 'node:zlib'

import sharp, { type Metadata, type Sharp } from 'sharp'

import { HttpError } from '../http/errors.ts'
import { spareMemory } from '../http/memory.ts'
import { CONVERSION_SECONDS } from '../config/timeout.ts'
import { MAX_PIXELS, NOT_A_PICTURE, OTHER_TYPE, tooLarge, tooManyUploads } from './refusals.ts'
import { SMALL } from './uses.ts'

/** The longer side of a stored picture, in pixels. */
const LARGE = 2000

/** A stored picture in two widths, with the width and height of `large` in pixels. */
export type Picture = Awaited<ReturnType<typeof convertPicture>>

// libvips can also read formats with a long history of vulnerabilities, such as SVG and TIFF.
sharp.block({ operation: ['VipsForeignLoad'] })
sharp.unblock({ operation: ['VipsForeignLoadJpegBuffer', 'VipsForeignLoadPngBuffer', 'VipsForeignLoadWebpBuffer'] })
// Caches would keep up to 50 MB between uploads. Several threads for one picture would delay other work.
sharp.cache(false)
sharp.concurrency(1)

/** Errors of sharp by words in their messages, because they lack codes. Other errors mean that the file is damaged. */
const ERRORS: [words: string, toError: (maxBytes: number) => HttpError][] = [
  ['exceeds pixel limit', maxBytes => new HttpError(413, tooLarge(maxBytes))],
  ['unsupported image format', () => new HttpError(415, OTHER_TYPE)],
  ['timeout', tooManyUploads],
]

/**
 * Decodes a picture and encodes it again: upright, at most LARGE pixels wide and high, without metadata. Rejects with
 * 400 for damaged pictures, 413 for too many pixels or if the conversion needs more memory than `spareBytes`, and 415
 * for other formats. `maxBytes` is for the message of the 413. Run one conversion at a time, because it may need more
 * memory than everything else in the process.
 */
export async function convertPicture (bytes: Buffer, maxBytes: number, spareBytes = spareMemory()) {
  try {
    const file = hasManySegments(bytes) ? undefined : withoutTexts(bytes)
    if (!file) throw new HttpError(413, tooLarge(maxBytes))
    const metadata = await decode(file).metadata()
    const neededBytes = conversionBytes(metadata) + tableBytes(file, metadata)
    if (neededBytes > spareBytes) throw new HttpError(413, tooLarge(maxBytes))
    const picture = decode(file)
    // Scaling 16 bits would take 60 MB more for a PNG of 16,000 × 2,500 pixels, and the result has 8 anyway.
    if (metadata.space === 'rgb16') picture.pipelineColourspace('srgb')
    const large = await encode(picture.autoOrient().resize(LARGE, LARGE, { fit: 'inside', ...NO_ENLARGEMENT }))
    const small = await encode(decode(large.data).resize(SMALL, null, NO_ENLARGEMENT))
    return { large: large.data, small: small.data, width: large.info.width, height: large.info.height }
  } catch (error) {
    if (error instanceof HttpError) throw error
    const [, toError] = ERRORS.find(([words]) => (error as Error).message.includes(words)) ?? []
    throw toError?.(maxBytes) ?? new HttpError(400, NOT_A_PICTURE)
  }
}

const PNG_SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

/** The chunks of a PNG that its pixels, colors and orientation need, and the chunk of its color profile. */
const [PROFILE, ...NEEDED] = ['iCCP', 'IHDR', 'PLTE', 'IDAT', 'IEND', 'tRNS', 'gAMA', 'cHRM', 'sRGB', 'eXIf']
  .map(type => Buffer.from(type).readUInt32BE())

/**
 * Maximum number of bytes of a color profile in a PNG, also before it is decompressed. Usual profiles have 1 to 500 KB.
 * 420,000 empty blocks in 10 MB stopped the service for 0.65 seconds.
 */
const MAX_PROFILE = 2 ** 20

/**
 * Maximum number of chunks of a PNG. Programs write chunks of 4 KB or more, so 2,500 in 10 MB. 830,000 empty texts in
 * 10 MB took 127 MB and stopped the service for 150 ms, and eight such uploads ended a process of 256 MB.
 */
const MAX_CHUNKS = 50_000

/**
 * Returns a PNG without texts and without a long color profile, and any other file unchanged. libvips decompresses both
 * before it knows the size of the picture: 50 texts in 385 KB took 2.7 GB, and a profile in 49 KB took 240 MB. Returns
 * `undefined` for a PNG with too many chunks.
 */
function withoutTexts (bytes: Buffer) {
  if (!bytes.subarray(0, PNG_SIGNATURE.length).equals(PNG_SIGNATURE)) return bytes
  const kept: Buffer[] = []
  let from = 0
  let chunks = 0
  let profiles = 0
  for (let start = PNG_SIGNATURE.length, end; start + 8 <= bytes.length; start = end) {
    if (++chunks > MAX_CHUNKS) return undefined
    end = start + 12 + bytes.readUInt32BE(start)
    const type = bytes.readUInt32BE(start + 4)
    if (NEEDED.includes(type)) continue
    // A PNG has at most one profile.
    if (type === PROFILE && profiles++ === 0 && isShortProfile(bytes.subarray(start + 8, end - 4))) continue
    kept.push(bytes.subarray(from, start))
    from = end
  }
  return from === 0 ? bytes : Buffer.concat([...kept, bytes.subarray(from)])
}

/** Tells whether the profile in this chunk, after its name and a zero for its compression, is not too long. */
function isShortProfile (data: Buffer) {
  if (data.length > MAX_PROFILE) return false
  try {
    return inflateSync(data.subarray(data.indexOf(0) + 2), { maxOutputLength: MAX_PROFILE }).length > 0
  } catch {
    return false
  }
}

/**
 * Maximum number of scans of a JPEG, and of the segments of each kind that libvips keeps. Programs write about 10
 * scans, and 160 segments for 10 MB of metadata. Of 40 megapixels, each scan can take 4 ms although it has 57 bytes,
 * and libvips cannot stop in between: with 130,000 of them, no other picture was converted for minutes. Each segment
 * takes 180 bytes, even an empty one: 2.5 million of them in 10 MB took 460 MB, and ended a process of 512 MB.
 */
const MAX_SEGMENTS = 500

/** The beginning of a JPEG. */
const JPEG = Buffer.from([0xff, 0xd8])

/** The second bytes of its scans, and of the segments that libvips keeps: APP1, APP2 and APP13. */
const COUNTED = [0xda, 0xe1, 0xe2, 0xed]

/**
 * Tells whether a JPEG has too many scans or segments. Other data, such as a video behind it, can only have a few such
 * bytes. A loop, because `indexOf` takes 180 ms for 10 MB of 0xff.
 */
function hasManySegments (bytes: Buffer) {
  if (!bytes.subarray(0, JPEG.length).equals(JPEG)) return false
  const counts = new Uint32Array(256)
  for (let at = 1; at < bytes.length; at++) if (bytes[at - 1] === 0xff) counts[bytes[at]!]!++
  return COUNTED.some(marker => counts[marker]! > MAX_SEGMENTS)
}

/**
 * Estimates from its header how much memory the conversion of a file needs at its peak, in bytes, without the tables of
 * a WebP. The factors are measured with flat, noisy and turned pictures of all kinds. A WebP took 8 % more, and a JPEG
 * with odd sampling 33 %.
 */
export function conversionBytes (
  { format, width, height, channels, depth, chromaSubsampling, isProgressive, hasAlpha }: Metadata
) {
  const pixels = width * height
  const longSide = Math.max(width, height)
  const resultPixels = pixels * Math.min(1, LARGE / longSide) ** 2
  // Noise in the alpha channel takes 27 bytes. An opaque one takes 7, but the header does not tell.
  const encoding = resultPixels * (hasAlpha ? 27 : 12)
  // libvips scales a JPEG while it decodes it. The decoder keeps all values of a progressive JPEG, 2 bytes for each.
  // Usual files with 4:2:0 have 1.5 values per pixel, but others with this name have more.
  const values = chromaSubsampling === '4:2:0' ? 2.25 : channels
  if (format === 'jpeg') return encoding + (isProgressive ? 2 * values * pixels : 0)
  // A lossless WebP is decoded as a whole, and this memory is free again before the result is encoded.
  if (format === 'webp') return Math.max(4 * pixels + 8 * resultPixels, encoding + 16 * resultPixels)
  // Up to 800 rows of a PNG are decoded at once, or all rows if it is interlaced. Scaling takes 5,000 bytes per column.
  // The height counts as much, because 40 million rows of one pixel take 8 s.
  const rows = isProgressive ? height : Math.min(height, 800)
  return encoding + rows * width * channels * (depth === 'ushort' ? 2 : 1) + 5000 * longSide
}

/** The chunks of a WebP that can be lossless: a picture, its alpha channel, and a frame with these. */
const LOSSLESS = ['VP8L', 'ALPH', 'ANMF']

/**
 * Returns how much memory the tables of codes in a WebP can take, in bytes. A lossless picture may have tables for each
 * tile of 4 × 4 pixels, at most 65,536, and libwebp makes all of them before it decodes a pixel: a file of 0.3 MB with
 * 1024 × 1024 pixels took 365 MB, and ended a process of 256 MB. Each byte of long codes takes up to 60 more: a file of
 * 10 MB took 920 MB. The number of tiles stands behind compressed data, so these are the most tables that fit.
 */
function tableBytes (file: Buffer, { format, width, height }: Metadata) {
  if (format !== 'webp' || !isLossless(file)) return 0
  const tiles = Math.ceil(width / 4) * Math.ceil(height / 4)
  return Math.min(65_536, tiles) * 5600 + 60 * file.length
}

/** Tells whether any part of a WebP can be lossless. */
function isLossless (file: Buffer) {
  for (let at = 12, length; at + 8 <= file.length; at += 8 + length + length % 2) {
    if (LOSSLESS.includes(file.toString('latin1', at, at + 4))) return true
    length = file.readUInt32LE(at + 4)
  }
  return false
}

/**
 * Sharp's default of 4 would take twice the processor time to save 5 % of the bytes. 1 would save less than 1 % of a
 * photo, but take 145 MB instead of 115 MB for noise in the alpha channel of the largest result.
 */
const EFFORT = 0

const NO_ENLARGEMENT = { withoutEnlargement: true }

function decode (bytes: Buffer) {
  return sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error', sequentialRead: true })
    .timeout({ seconds: CONVERSION_SECONDS })
}

function encode (picture: Sharp) {
  return picture.webp({ quality: 80, effort: EFFORT }).toBuffer({ resolveWithObject: true })
}

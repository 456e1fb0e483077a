import sharp, { type Sharp } from 'sharp'

import { HttpError } from '../http/errors.ts'
import { CONVERSION_SECONDS } from '../config/timeout.ts'
import {
  MAX_PIXELS, MAX_PROGRESSIVE_PIXELS, MAX_SIDE, NOT_A_PICTURE, OTHER_TYPE, tooLarge, tooManyUploads,
} from './refusals.ts'
import { SMALL } from './uses.ts'

/** The longer side of a stored picture, in pixels. */
const LARGE = 2000

/** A stored picture in two widths. */
export interface Picture {
  large: Buffer
  small: Buffer
  /** Of `large`, in pixels. */
  width: number
  height: number
}

/** See `convertPicture`. */
export type Convert = (bytes: Buffer, maxBytes: number) => Promise<Picture>

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
 * 400 for damaged pictures, 413 for too many pixels, and 415 for other formats. `maxBytes` is for the message of the
 * 413. Run one conversion at a time, because it may need more memory than everything else in the process.
 */
export const convertPicture: Convert = async (bytes, maxBytes) => {
  try {
    const { isProgressive, width, height } = await decode(bytes).metadata()
    const maxPixels = isProgressive ? MAX_PROGRESSIVE_PIXELS : MAX_PIXELS
    if (width * height > maxPixels || Math.max(width, height) > MAX_SIDE) throw new HttpError(413, tooLarge(maxBytes))
    const large = await encode(decode(bytes).autoOrient().resize(LARGE, LARGE, { fit: 'inside', ...NO_ENLARGEMENT }))
    const small = await encode(decode(large.data).resize(SMALL, null, NO_ENLARGEMENT))
    return { large: large.data, small: small.data, width: large.info.width, height: large.info.height }
  } catch (error) {
    if (error instanceof HttpError) throw error
    const [, toError] = ERRORS.find(([words]) => (error as Error).message.includes(words)) ?? []
    throw toError?.(maxBytes) ?? new HttpError(400, NOT_A_PICTURE)
  }
}

/** Sharp's default of 4 would take two thirds more processor time to save 5 % of the bytes. */
const EFFORT = 1

const NO_ENLARGEMENT = { withoutEnlargement: true }

function decode (bytes: Buffer) {
  return sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error', sequentialRead: true })
    .timeout({ seconds: CONVERSION_SECONDS })
}

function encode (picture: Sharp) {
  return picture.webp({ quality: 80, effort: EFFORT }).toBuffer({ resolveWithObject: true })
}

import sharp, { type Sharp } from 'sharp'

import { HttpError } from '../errors.ts'
import { FairQueue } from '../fair-queue.ts'
import type { Client } from '../http/client-network.ts'
import { PICTURE_SECONDS } from '../timeout.ts'

/** The media types of pictures that people can upload. */
export const PICTURE_TYPES = ['image/jpeg', 'image/png', 'image/webp']

/** The longer side of a stored picture, in pixels. */
const LARGE = 2000

/** The width of the small version for lists, in pixels. */
export const SMALL = 480

/** Maximum number of pixels. Decoding some rows at a time needs up to 160 MB. */
const MAX_PIXELS = 40_000_000

/** Maximum number of pixels of a progressive JPEG or interlaced PNG. Decoding it as a whole needs up to 210 MB. */
const MAX_PROGRESSIVE_PIXELS = 16_000_000

/** Maximum width and height, in pixels. Scaling needs many rows at once, up to 230 MB for a PNG of this width. */
const MAX_SIDE = 16_000

/** Limits of the wait for a conversion and of the conversion. */
const WAIT_SECONDS = 5
const CONVERSION_SECONDS = PICTURE_SECONDS - WAIT_SECONDS

/** Maximum number of waiting uploads. The memory budget counts their bytes. */
export const QUEUE_LENGTH = 20

/** Error messages of refused uploads. */
export const TOO_MANY_UPLOADS = 'Too many pictures are being uploaded right now, please try again in a few seconds'
export const NOT_A_PICTURE = 'The file is not a picture, or it is damaged'
export const OTHER_TYPE = 'A picture must be a JPEG, PNG or WebP file'
export const tooLarge = (bytes: number) =>
  `A picture may have at most ${bytes / 1_000_000} MB, ${MAX_SIDE} pixels per side and ` +
    `${MAX_PIXELS / 1_000_000} megapixels, or ${MAX_PROGRESSIVE_PIXELS / 1_000_000} if it is progressive`

/** A stored picture in two widths. */
export interface Picture {
  large: Buffer
  small: Buffer
  /** Of `large`, in pixels. */
  width: number
  height: number
}

// libvips can also read formats with a long history of vulnerabilities, such as SVG and TIFF.
sharp.block({ operation: ['VipsForeignLoad'] })
sharp.unblock({ operation: ['VipsForeignLoadJpegBuffer', 'VipsForeignLoadPngBuffer', 'VipsForeignLoadWebpBuffer'] })
// Caches would keep up to 50 MB between uploads. Several threads for one picture would delay other work.
sharp.cache(false)
sharp.concurrency(1)

const tooManyUploads = () => new HttpError(503, TOO_MANY_UPLOADS, { headers: { 'retry-after': 5 } })

/** Runs one conversion at a time, which may need more memory than everything else in the process. */
const queue = new FairQueue({
  concurrency: 1,
  maxLength: QUEUE_LENGTH,
  maxWaitMs: WAIT_SECONDS * 1000,
  createError: tooManyUploads,
})

/** Rejects with a 503 if the queue is full for the network of this client. */
export async function assertPictureQueue (client: Client) {
  await queue.assertNotFull(client)
}

/** Errors of sharp by words in their messages, because they lack codes. Other errors mean that the file is damaged. */
const ERRORS: [words: string, toError: (maxBytes: number) => HttpError][] = [
  ['exceeds pixel limit', maxBytes => new HttpError(413, tooLarge(maxBytes))],
  ['unsupported image format', () => new HttpError(415, OTHER_TYPE)],
  ['timeout', tooManyUploads],
]

/**
 * Decodes a picture and encodes it again: upright, at most LARGE pixels wide and high, without metadata. The queue is
 * fair by network. Rejects with 400 for damaged pictures, 413 for too many pixels, 415 for other formats, and 503 if
 * the queue is full. `maxBytes` is for the message of the 413.
 */
export function convertPicture (bytes: Buffer, maxBytes: number, client: Client): Promise<Picture> {
  return queue.run(client, async () => {
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
  })
}

const NO_ENLARGEMENT = { withoutEnlargement: true }

function decode (bytes: Buffer) {
  return sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error', sequentialRead: true })
    .timeout({ seconds: CONVERSION_SECONDS })
}

function encode (picture: Sharp) {
  return picture.webp({ quality: 80 }).toBuffer({ resolveWithObject: true })
}

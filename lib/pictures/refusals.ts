import { HttpError } from '../http/errors.ts'

/** The media types of pictures that people can upload. */
export const PICTURE_TYPES = ['image/jpeg', 'image/png', 'image/webp']

/** Maximum number of pixels. Noise of so many takes 6 of CONVERSION_SECONDS. */
export const MAX_PIXELS = 40_000_000

// Error messages of refused uploads.
export const PUBLIC_URL_REQUIRED = 'PUBLIC_URL is not configured'
export const CANNOT_CONVERT = 'This server cannot convert pictures'
export const TOO_MANY_UPLOADS = 'Too many pictures are being uploaded right now, please try again in a few seconds'
export const NOT_A_PICTURE = 'The file is not a picture, or it is damaged'
export const OTHER_TYPE = 'A picture must be a JPEG, PNG or WebP file'
export const tooLarge = (bytes: number) =>
  `A picture may have at most ${bytes / 1_000_000} MB and ${MAX_PIXELS / 1_000_000} megapixels, or fewer if it takes ` +
    'much memory. Please save it smaller, or as a JPEG that is not progressive'
export const tooManyPictures = (count: number, megabytes: number) =>
  `You may have at most ${count} pictures and ${megabytes} MB of them. Please delete some first`

export const tooManyUploads = () => new HttpError(503, TOO_MANY_UPLOADS, { headers: { 'retry-after': 5 } })

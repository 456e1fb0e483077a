import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

/** What may be done at a stretch without holding up other requests for more than some milliseconds, in bytes. */
const SLICE = 1024 * 1024

const CODERS: { [coding: string]: (bytes: Buffer) => Promise<Buffer> } = {
  br: bytes => promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: promisify<Buffer, Buffer>(gzip),
}

/** All content codings, the best one first. */
export const CODINGS = Object.keys(CODERS)

/** A body that is sent many times: what costs something is done once. */
export interface SharedBody {
  bytes: Buffer
  /** Equal for equal bytes, in every instance. */
  hash: string
  /** The bytes in one of the codings: the same promise for all who ask. */
  encode (coding: string): Promise<Buffer>
}

/** Prepares a body for being sent many times. */
export async function shareBody (bytes: Buffer): Promise<SharedBody> {
  const encoded: { [coding: string]: Promise<Buffer> } = {}
  return {
    bytes,
    hash: await hash(bytes),
    encode (coding) {
      encoded[coding] ??= CODERS[coding]!(bytes)
      return encoded[coding]
    },
  }
}

async function hash (bytes: Buffer) {
  const hash = createHash('sha1')
  for (let start = 0; start < bytes.length; start += SLICE) {
    hash.update(bytes.subarray(start, start + SLICE))
    if (bytes.length > SLICE) await setImmediate()
  }
  return hash.digest('base64url')
}

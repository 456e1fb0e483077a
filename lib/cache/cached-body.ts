import { createHash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { constants, createBrotliCompress, createGzip } from 'node:zlib'

/** A body in chunks. Copying or hashing 30 MB in one piece would delay all other requests by 20 to 60 ms. */
export type Chunks = Buffer[]

/** Length of a full chunk in bytes. Copying or hashing it takes about a millisecond. */
const CHUNK_SIZE = 1024 * 1024

/** Initial length of the first chunk in bytes. It doubles until the chunk is full. */
const SMALLEST_CHUNK = 1024

/** Output bytes per step of an encoder. Each step waits in the queue of the thread pool. */
const ENCODER_CHUNK = 256 * 1024

/** Encoding a list of 127 KB takes 0.6 ms (gzip, level 1) to 2 ms (brotli, level 5) of a core. */
const ENCODERS = {
  br: () => createBrotliCompress({ chunkSize: ENCODER_CHUNK, params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: () => createGzip({ chunkSize: ENCODER_CHUNK }),
}

/** Time after which a response is sent unencoded. */
const ENCODE_TIMEOUT_MS = 1000

/** Number of parallel encodings: the threads that are not reserved for passwords (one per core), but at least one. */
const AT_ONCE = Math.max(1, (Number(process.env.UV_THREADPOOL_SIZE) || 4) - availableParallelism())

/** Number of running encodings. */
let running = 0

/** A supported content coding. */
export type Encoding = keyof typeof ENCODERS

/** The supported content codings, best first. */
export const ENCODINGS = Object.keys(ENCODERS) as Encoding[]

/**
 * Collects pieces into chunks. Pieces are copied, because a small piece may be part of a large buffer and would keep it
 * in memory.
 */
export class ChunkCollector {
  readonly #chunks: Chunks = []
  #chunk = Buffer.allocUnsafe(SMALLEST_CHUNK)
  #length = 0

  add (piece: Buffer) {
    for (let taken = 0; taken < piece.length;) {
      if (this.#length === this.#chunk.length) this.#makeRoom()
      const copied = piece.copy(this.#chunk, this.#length, taken)
      taken += copied
      this.#length += copied
    }
  }

  end (): Chunks {
    // A slice of Node's buffer pool would keep the whole pool in memory.
    const last = Buffer.allocUnsafeSlow(this.#length)
    this.#chunk.copy(last, 0, 0, this.#length)
    return [...this.#chunks, last]
  }

  #makeRoom () {
    const full = this.#chunk
    this.#chunk = Buffer.allocUnsafe(Math.min(2 * full.length, CHUNK_SIZE))
    if (full.length < CHUNK_SIZE) {
      full.copy(this.#chunk)
    } else {
      this.#chunks.push(full)
      this.#length = 0
    }
  }
}

/** A plain or encoded body, with its length in bytes. */
export interface Sendable {
  readonly chunks: Chunks
  readonly length: number
}

/** A body that is sent many times, hashed once and encoded once per content coding. */
export class CachedBody implements Sendable {
  readonly chunks: Chunks
  readonly length: number
  /** SHA-256 of the bytes, base64url. All instances compute the same hash. */
  readonly hash: string
  readonly contentType: string
  readonly #encoded: { [encoding in Encoding]?: Promise<Sendable | undefined> } = {}

  constructor (chunks: Chunks, hash: string, contentType: string) {
    this.chunks = chunks
    this.length = lengthOf(chunks)
    this.hash = hash
    this.contentType = contentType
  }

  /** Whether an encoding makes it shorter. Pictures are compressed already. */
  get isCompressible () { return !this.contentType.startsWith('image/') }

  /**
   * Encodes the body once for all callers. Resolves to `undefined` if encoding fails or exceeds the timeout, because
   * the thread pool may be busy with passwords. Also resolves to `undefined` if too many encodings run: they continue
   * even if all clients have gone.
   */
  encode (name: Encoding): Promise<Sendable | undefined> {
    if (!this.#encoded[name] && running >= AT_ONCE) return Promise.resolve(undefined)
    this.#encoded[name] ??= this.#start(name)
    return this.#encoded[name]
  }

  #start (name: Encoding) {
    running++
    const encoded = encode(this.chunks, name).finally(() => running--)
    const finished = encoded.then(() => {
      this.#encoded[name] = encoded
      return encoded
    }, () => {
      delete this.#encoded[name]
      return undefined
    })
    return Promise.race([finished, sleep(ENCODE_TIMEOUT_MS, undefined, { ref: false })])
  }
}

async function encode (chunks: Chunks, name: Encoding): Promise<Sendable> {
  const collector = new ChunkCollector()
  await pipeline(Readable.from(chunks), ENCODERS[name](), async encoded => {
    for await (const chunk of encoded) collector.add(chunk as Buffer)
  })
  const encoded = collector.end()
  return { chunks: encoded, length: lengthOf(encoded) }
}

/** Returns the SHA-256 of the bytes, base64url. */
export async function hashChunks (chunks: Chunks) {
  const hash = createHash('sha256')
  for (const chunk of chunks) {
    hash.update(chunk)
    if (chunks.length > 1) await setImmediate()
  }
  return hash.digest('base64url')
}

function lengthOf (chunks: Chunks) {
  return chunks.reduce((sum, { length }) => sum + length, 0)
}

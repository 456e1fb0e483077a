import { createHash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { constants, createBrotliCompress, createGzip } from 'node:zlib'

/** A body in chunks, so that no single copy, hash or write of a large one delays other requests. */
export type Chunks = Buffer[]

/** Length of a full chunk in bytes: copied, or hashed, in a millisecond. */
const CHUNK_SIZE = 1024 * 1024

/** Length of the first chunk at first; it doubles until it is a full one. */
const SMALLEST_CHUNK = 1024

/** Bytes that an encoder hands over at a time. Each hand-over takes a turn in the queue of the thread pool. */
const ENCODER_CHUNK = 256 * 1024

const ENCODERS = {
  br: () => createBrotliCompress({ chunkSize: ENCODER_CHUNK, params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: () => createGzip({ chunkSize: ENCODER_CHUNK }),
}

/** How long a response waits for its body to be encoded, in milliseconds; after that it is sent as it is. */
const ENCODE_TIMEOUT_MS = 1000

/** How many bodies are encoded at once: the threads of the pool that passwords leave (one a core); at least one. */
const AT_ONCE = Math.max(1, (Number(process.env.UV_THREADPOOL_SIZE) || 4) - availableParallelism())

/** How many are being encoded at this moment. */
let encoding = 0

/** A content coding that a body may be sent in. */
export type Encoding = keyof typeof ENCODERS

/** The content codings that a body may be sent in, the best one first. */
export const ENCODINGS = Object.keys(ENCODERS) as Encoding[]

/**
 * Collects pieces into chunks. Each piece is copied: it may be a small part of a large buffer, and would keep that.
 * Before it takes more memory, it says how many bytes more; the listener may throw.
 */
export class ChunkCollector {
  readonly #chunks: Chunks = []
  readonly #onGrowth: (bytes: number) => void
  #chunk = Buffer.allocUnsafe(SMALLEST_CHUNK)
  #length = 0

  constructor (onGrowth: (bytes: number) => void = () => {}) {
    this.#onGrowth = onGrowth
  }

  add (piece: Buffer) {
    for (let taken = 0; taken < piece.length;) {
      if (this.#length === this.#chunk.length) this.#makeRoom()
      const copied = piece.copy(this.#chunk, this.#length, taken)
      taken += copied
      this.#length += copied
    }
  }

  end (): Chunks {
    // Not from Node's buffer pool, all of which a part of it would keep.
    const last = Buffer.allocUnsafeSlow(this.#length)
    this.#chunk.copy(last, 0, 0, this.#length)
    return [...this.#chunks, last]
  }

  #makeRoom () {
    const full = this.#chunk
    this.#onGrowth(full.length)
    this.#chunk = Buffer.allocUnsafe(Math.min(2 * full.length, CHUNK_SIZE))
    if (full.length < CHUNK_SIZE) {
      full.copy(this.#chunk)
    } else {
      this.#chunks.push(full)
      this.#length = 0
    }
  }
}

/** A body in chunks, or in an encoding, with its length in bytes. */
export interface Sendable {
  readonly chunks: Chunks
  readonly length: number
}

interface BodyOptions {
  hash: string
  contentType: string
  /** How long a response waits for an encoding, in milliseconds. */
  timeout?: number
}

/** A body that is sent many times; it is hashed once, and encoded once for each content coding. */
export class CachedBody implements Sendable {
  readonly chunks: Chunks
  readonly length: number
  /** SHA-256 of the bytes, base64url: equal for equal bytes in every instance. */
  readonly hash: string
  readonly contentType: string
  readonly #encoded: { [encoding in Encoding]?: Promise<Sendable | undefined> } = {}
  readonly #timeout: number

  constructor (chunks: Chunks, { hash, contentType, timeout = ENCODE_TIMEOUT_MS }: BodyOptions) {
    this.chunks = chunks
    this.length = lengthOf(chunks)
    this.hash = hash
    this.contentType = contentType
    this.#timeout = timeout
  }

  /**
   * The body in this encoding, which the first call produces for all. Resolves to `undefined` while that takes longer
   * than the timeout, for the thread pool may be busy with passwords; while enough others are being encoded, since an
   * encoding goes on that no client waits for any more; and when it fails.
   */
  encode (name: Encoding): Promise<Sendable | undefined> {
    if (!this.#encoded[name] && encoding >= AT_ONCE) return Promise.resolve(undefined)
    this.#encoded[name] ??= this.#start(name)
    return this.#encoded[name]
  }

  #start (name: Encoding) {
    encoding++
    const encoded = encode(this.chunks, name).finally(() => encoding--)
    const finished = encoded.then(() => {
      this.#encoded[name] = encoded
      return encoded
    }, () => {
      delete this.#encoded[name]
      return undefined
    })
    return Promise.race([finished, sleep(this.#timeout, undefined, { ref: false })])
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

/** The SHA-256 of the bytes, base64url. */
export async function hashChunks (chunks: Chunks) {
  const hash = createHash('sha256')
  for (const chunk of chunks) {
    hash.update(chunk)
    if (chunks.length > 1) await setImmediate()
  }
  return hash.digest('base64url')
}

/** The number of bytes in the chunks. */
function lengthOf (chunks: Chunks) {
  return chunks.reduce((sum, { length }) => sum + length, 0)
}

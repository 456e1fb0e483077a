import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { constants, createBrotliCompress, createGzip } from 'node:zlib'

/** Bytes in blocks, so that nobody waits while many are copied, hashed or sent at a stretch. */
export type Blocks = Buffer[]

/** About as long a block is made, in bytes: copied, or hashed, in a few milliseconds. */
const BLOCK = 4 * 1024 * 1024

/** How long the first one is at first; it grows up to the length of the others. */
const SMALLEST = 1024

const ENCODERS: { [coding: string]: () => NodeJS.ReadWriteStream } = {
  br: () => createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: () => createGzip(),
}

/** The content codings that a body may have, the best one first. */
export const CODINGS = Object.keys(ENCODERS)

/**
 * Puts pieces together to blocks. Each piece is copied as it comes: it may be a small part of something big, and many
 * small things that live for a while are what garbage collection takes longest for.
 */
export function collectBlocks () {
  const blocks: Blocks = []
  let block = Buffer.allocUnsafe(SMALLEST)
  let length = 0

  return {
    add (piece: Buffer) {
      for (let taken = 0; taken < piece.length;) {
        if (length === block.length) makeRoom()
        const copied = piece.copy(block, length, taken)
        taken += copied
        length += copied
      }
    },
    end () {
      // Memory of its own: a part of the pool would keep all the rest of that.
      const last = Buffer.allocUnsafeSlow(length)
      block.copy(last, 0, 0, length)
      return [...blocks, last]
    },
  }

  function makeRoom () {
    const full = block
    block = Buffer.allocUnsafe(Math.min(2 * full.length, BLOCK))
    if (full.length < BLOCK) return full.copy(block)
    blocks.push(full)
    length = 0
  }
}

/** A body that is sent many times. What costs something is done once. */
export class SharedBody {
  readonly blocks: Blocks
  readonly length: number
  /** Equal for equal bytes, in every instance, and for no others. */
  readonly hash: string
  readonly #encoded: { [coding: string]: Promise<Blocks> } = {}

  constructor (blocks: Blocks, hash: string) {
    this.blocks = blocks
    this.length = lengthOf(blocks)
    this.hash = hash
  }

  /** The body in one of the codings. */
  encode (coding: string): Promise<Blocks> {
    this.#encoded[coding] ??= encode(this.blocks, coding)
    return this.#encoded[coding]
  }
}

async function encode (blocks: Blocks, coding: string) {
  const { add, end } = collectBlocks()
  for await (const chunk of Readable.from(blocks).pipe(ENCODERS[coding]!())) add(chunk as Buffer)
  return end()
}

/** The SHA-256 of the bytes. */
export async function hashBlocks (blocks: Blocks) {
  const hash = createHash('sha256')
  for (const block of blocks) {
    hash.update(block)
    if (blocks.length > 1) await setImmediate()
  }
  return hash.digest('base64url')
}

export function lengthOf (blocks: Blocks) {
  return blocks.reduce((sum, { length }) => sum + length, 0)
}

import { randomBytes } from 'node:crypto'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'

import t from 'tap'

import { CODINGS, collectBlocks, hashBlocks, lengthOf, SharedBody } from '#lib/shared-body.js'

const MEGABYTE = 1024 * 1024
const DECODERS: { [coding: string]: (bytes: Buffer) => Buffer } = { br: brotliDecompressSync, gzip: gunzipSync }
const text = Buffer.from(JSON.stringify({ name: 'Ünïcödé 😀', items: Array.from({ length: 500 }, (_, n) => n) }))

/** The blocks of these pieces. */
function collect (...pieces: Buffer[]) {
  const { add, end } = collectBlocks()
  for (const piece of pieces) add(piece)
  return end()
}

t.test('pieces are copied to blocks of some megabytes', async t => {
  t.strictSame(collect(), [Buffer.alloc(0)])
  const piece = randomBytes(MEGABYTE)
  const blocks = collect(...Array.from({ length: 10 }, () => piece))
  t.strictSame(blocks.map(({ length }) => length / MEGABYTE), [4, 4, 2])
  t.strictSame(Buffer.concat(blocks), Buffer.concat(Array.from({ length: 10 }, () => piece)))
  t.equal(lengthOf(blocks), 10 * MEGABYTE)
  piece[0]! ^= 1
  t.not(blocks[0]![0], piece[0])
  const big = randomBytes(9 * MEGABYTE)
  const parts = collect(big)
  t.strictSame(parts.map(({ length }) => length / MEGABYTE), [4, 4, 1])
  t.strictSame(Buffer.concat(parts), big)
})

t.test('a hash is that of the bytes, however they are divided', async t => {
  const bytes = randomBytes(9 * MEGABYTE)
  const hash = await hashBlocks([bytes])
  t.match(hash, /^[\w-]{43}$/, 'that an entity tag can be made of')
  t.equal(await hashBlocks(collect(bytes.subarray(0, 7 * MEGABYTE), bytes.subarray(7 * MEGABYTE))), hash)
  // The last bit of the last byte.
  bytes[bytes.length - 1]! ^= 1
  t.not(await hashBlocks([bytes]), hash)
  t.equal(await hashBlocks([Buffer.from('[]')]), 'T1PNoYwrqgwDVLtfmj7L5e0Sq02OEbqHPC8RFhICuUU', 'ever since')
})

t.test('a body is encoded once in each coding, and decodes to its bytes', async t => {
  t.strictSame(CODINGS, ['br', 'gzip'], 'the best one first')
  const body = new SharedBody([text.subarray(0, 100), text.subarray(100)], 'a hash')
  t.strictSame([body.hash, body.length], ['a hash', text.length])
  for (const coding of CODINGS) {
    const encoded = body.encode(coding)
    t.equal(body.encode(coding), encoded, `${coding} before it is done`)
    const blocks = await encoded
    t.equal(body.encode(coding), encoded, `${coding} afterwards`)
    t.strictSame(DECODERS[coding]!(Buffer.concat(blocks)), text)
    t.ok(lengthOf(blocks) < text.length / 2)
  }
})

t.test('what is due meanwhile does not wait for a big body', async t => {
  const events: string[] = []
  const hashing = hashBlocks(Array.from({ length: 8 }, () => Buffer.alloc(MEGABYTE))).then(() => events.push('hashed'))
  // Whatever else is to do comes in turns of the event loop.
  for (let turn = 1; turn <= 5; turn++) {
    await new Promise(setImmediate)
    events.push(`turn ${turn}`)
  }
  await hashing
  t.strictSame(events, ['turn 1', 'turn 2', 'turn 3', 'turn 4', 'turn 5', 'hashed'])
})

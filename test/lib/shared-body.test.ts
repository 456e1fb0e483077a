import { randomBytes } from 'node:crypto'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'

import t from 'tap'

import { CODINGS, shareBody } from '#lib/shared-body.js'

const MEGABYTE = 1024 * 1024
const DECODERS: { [coding: string]: (bytes: Buffer) => Buffer } = { br: brotliDecompressSync, gzip: gunzipSync }
const text = Buffer.from(JSON.stringify({ name: 'Ünïcödé 😀', items: Array.from({ length: 500 }, (_, n) => n) }))

t.test('a body has the hash of its bytes, in every instance', async t => {
  const sizes = [0, 1, MEGABYTE - 1, MEGABYTE, MEGABYTE + 1, 3 * MEGABYTE, 3 * MEGABYTE + 5]
  const hashes = new Set<string>()
  for (const size of sizes) {
    const bytes = randomBytes(size)
    const { hash, bytes: same } = await shareBody(bytes)
    t.equal(same, bytes)
    t.match(hash, /^[\w-]{27}$/, 'that an entity tag can be made of')
    t.equal((await shareBody(Buffer.from(bytes))).hash, hash, `${size} bytes`)
    hashes.add(hash)
    if (size === 0) continue
    // The last bit of the last byte.
    bytes[size - 1]! ^= 1
    hashes.add((await shareBody(bytes)).hash)
  }
  t.equal(hashes.size, 2 * sizes.length - 1, 'other bytes, another hash')
  t.equal((await shareBody(Buffer.from('[]'))).hash, 'l9Fw4VUO7kr8CvBlt4zaMCqXZ0w', 'also of other versions')
})

t.test('a body is encoded once in each coding, and decodes to its bytes', async t => {
  t.strictSame(CODINGS, ['br', 'gzip'], 'the best one first')
  const body = await shareBody(text)
  for (const coding of CODINGS) {
    const encoded = body.encode(coding)
    t.equal(body.encode(coding), encoded, `${coding} before it is done`)
    const bytes = await encoded
    t.equal(body.encode(coding), encoded, `${coding} afterwards`)
    t.strictSame(DECODERS[coding]!(bytes), text)
    t.ok(bytes.length < text.length / 2)
  }
})

t.test('what is due meanwhile does not wait for a big body', async t => {
  const events: string[] = []
  const sharing = shareBody(Buffer.alloc(8 * MEGABYTE)).then(() => events.push('shared'))
  // Whatever else is to do comes in turns of the event loop.
  for (let turn = 1; turn <= 5; turn++) {
    await new Promise(setImmediate)
    events.push(`turn ${turn}`)
  }
  await sharing
  t.strictSame(events, ['turn 1', 'turn 2', 'turn 3', 'turn 4', 'turn 5', 'shared'])
})

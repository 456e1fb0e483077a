import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'

import { CachedBody, ChunkCollector, ENCODINGS, hashChunks } from '#lib/cache/cached-body.js'
import t from '../../suite.ts'

const MEGABYTE = 1024 * 1024
const DECODERS: { [encoding: string]: (bytes: Buffer) => Buffer } = { br: brotliDecompressSync, gzip: gunzipSync }
const text = Buffer.from(JSON.stringify({ name: 'Ünïcödé 😀', items: Array.from({ length: 500 }, (_, n) => n) }))

/** Collects these pieces into chunks. */
function collect (...pieces: Buffer[]) {
  const collector = new ChunkCollector()
  for (const piece of pieces) collector.add(piece)
  return collector.end()
}

t.test('Pieces are copied into chunks of a megabyte', async t => {
  t.strictSame(collect(), [Buffer.alloc(0)])
  const piece = randomBytes(MEGABYTE)
  const chunks = collect(...Array.from({ length: 10 }, () => piece))
  t.strictSame(chunks.map(({ length }) => length / MEGABYTE), Array(10).fill(1))
  t.strictSame(Buffer.concat(chunks), Buffer.concat(Array.from({ length: 10 }, () => piece)))
  piece[0]! ^= 1
  t.not(chunks[0]![0], piece[0])
  const big = randomBytes(9 * MEGABYTE)
  const parts = collect(big)
  t.strictSame(parts.map(({ length }) => length / MEGABYTE), Array(9).fill(1))
  t.strictSame(Buffer.concat(parts), big)
})

t.test('The hash depends on the bytes, not on the chunks', async t => {
  const bytes = randomBytes(9 * MEGABYTE)
  const hash = await hashChunks([bytes])
  t.match(hash, /^[\w-]{43}$/, 'valid in an entity tag')
  t.equal(await hashChunks(collect(bytes.subarray(0, 7 * MEGABYTE), bytes.subarray(7 * MEGABYTE))), hash)
  // The last bit of the last byte.
  bytes[bytes.length - 1]! ^= 1
  t.not(await hashChunks([bytes]), hash)
})

t.test('A body is encoded once in each encoding', async t => {
  t.strictSame(ENCODINGS, ['br', 'gzip'], 'the preferred one first')
  const chunks = [text.subarray(0, 100), text.subarray(100)]
  const body = new CachedBody(chunks, 'a hash', 'text/plain')
  t.strictSame([body.hash, body.length], ['a hash', text.length])
  for (const encoding of ENCODINGS) {
    const encoded = body.encode(encoding)
    t.equal(body.encode(encoding), encoded, `${encoding} while it is encoded`)
    const { chunks, length } = (await encoded)!
    t.equal(await body.encode(encoding), await encoded, `${encoding} afterwards`)
    t.strictSame(DECODERS[encoding]!(Buffer.concat(chunks)), text)
    t.equal(length, Buffer.concat(chunks).length)
    t.ok(length < text.length / 2)
  }
})

t.test('A body is sent unencoded while encoding it takes too long', async t => {
  // Each waits for a writer of the pipe, and together they take all threads of the pool.
  const pipe = join(t.testdir(), 'pipe')
  await promisify(execFile)('mkfifo', [pipe])
  const threads = Number(process.env.UV_THREADPOOL_SIZE) || 4
  const busy = Array.from({ length: threads }, () => open(pipe, 'r'))
  const body = new CachedBody([randomBytes(MEGABYTE)], 'a hash', 'text/plain')
  t.equal(await body.encode('br'), undefined)
  const writer = openSync(pipe, 'r+')
  for (const file of await Promise.all(busy)) await file.close()
  closeSync(writer)
  while (!await body.encode('br')) await sleep(5)
  t.equal(await body.encode('br'), await body.encode('br'))
})

t.test('Past the limit of encodings at once, a body is sent unencoded', async t => {
  const bodies = Array.from({ length: 5 }, () =>
    new CachedBody([randomBytes(10_000)], 'a hash', 'text/plain'))
  const encoded = await Promise.all(bodies.map(body => body.encode('gzip')))
  t.ok(encoded[0])
  t.equal(encoded.at(-1), undefined)
  t.ok(await bodies.at(-1)!.encode('gzip'), 'afterwards it is encoded')
})

t.test('A body that cannot be encoded is sent unencoded', async t => {
  const body = new CachedBody([text], 'a hash', 'text/plain')
  for (let time = 0; time < 2; time++) t.equal(await body.encode('none' as never), undefined)
})

t.test('Encoding a big body does not block the event loop', async t => {
  const events: string[] = []
  const hashing = hashChunks(Array.from({ length: 8 }, () => Buffer.alloc(MEGABYTE))).then(() => events.push('hashed'))
  // Counts turns of the event loop, in which other work would run.
  for (let turn = 1; turn <= 5; turn++) {
    await new Promise(setImmediate)
    events.push(`turn ${turn}`)
  }
  await hashing
  t.strictSame(events, ['turn 1', 'turn 2', 'turn 3', 'turn 4', 'turn 5', 'hashed'])
})

import { once } from 'node:events'
import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'

import { joinChunks } from '#lib/http/join-chunks.js'
import t from '../../suite.ts'

t.test('A body has the same bytes in fewer chunks', async t => {
  const parts = [...Array.from({ length: 10_000 }, (_, n) => n % 256), -1, 5, -1]
    .map(part => part < 0 ? Buffer.alloc(100_000, 7) : Buffer.of(part))
  const chunks: Buffer[] = []
  for await (const chunk of joinChunks(Readable.from(parts, { objectMode: false }), Infinity)) chunks.push(chunk)
  t.ok(Buffer.concat(chunks).equals(Buffer.concat(parts)))
  t.ok(chunks.length < 20, `${chunks.length}`)
  t.equal((await buffer(joinChunks(Readable.from([]), Infinity))).length, 0)
})

t.test('Chunks do not wait in the body, and what exceeds the limit is dropped', async t => {
  const source = new PassThrough()
  const joined = joinChunks(source, 10_000)
  for (let n = 0; n < 100_000; n++) {
    source.write('x')
    if (n % 10_000 === 0) await setImmediate()
  }
  await setImmediate()
  t.equal(source.readableLength, 0)
  t.ok(joined.readableLength > 10_000 && joined.readableLength < 20_000, `${joined.readableLength} bytes wait`)
})

t.test('An error of the body is passed on, even if nobody reads yet', async t => {
  const source = new PassThrough()
  const failed = buffer(joinChunks(source, Infinity))
  source.destroy(new Error('gone'))
  await t.rejects(failed, { message: 'gone' })

  const unread = new PassThrough()
  const joined = joinChunks(unread, Infinity)
  unread.destroy(new Error('gone'))
  await setImmediate()
  t.equal(joined.errored?.message, 'gone')
})

t.test('After the stream is destroyed, the rest of the body is dropped', async t => {
  const source = new PassThrough()
  joinChunks(source, Infinity).destroy()
  source.end('rest')
  await once(source, 'end')
  t.equal(source.readableLength, 0)
})

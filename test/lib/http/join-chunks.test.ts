import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'

import { joinChunks } from '#lib/http/join-chunks.js'
import t from '../../suite.ts'

t.test('A body has the same bytes in fewer chunks', async t => {
  const parts = [...Array.from({ length: 10_000 }, (_, n) => n % 256), -1, 5, -1]
    .map(part => part < 0 ? Buffer.alloc(100_000, 7) : Buffer.of(part))
  const chunks: Buffer[] = []
  for await (const chunk of joinChunks(Readable.from(parts, { objectMode: false }))) chunks.push(chunk)
  t.ok(Buffer.concat(chunks).equals(Buffer.concat(parts)))
  t.ok(chunks.length < 20, `${chunks.length}`)
  t.equal((await buffer(joinChunks(Readable.from([])))).length, 0)
})

t.test('An error of the body is passed on, and a destroyed stream leaves the body alone', async t => {
  const source = new PassThrough()
  const failed = buffer(joinChunks(source))
  source.destroy(new Error('gone'))
  await t.rejects(failed, { message: 'gone' })

  const other = new PassThrough()
  joinChunks(other).destroy()
  other.end('rest')
  t.equal(String(await buffer(other)), 'rest')
})

import { setImmediate } from 'node:timers/promises'

import { Listener } from '#lib/live/listener.js'
import t from '../../suite.ts'

const list = (url: string) =>
  ({ url, etag: undefined as string | undefined, readAt: Infinity })

t.test('A client that does not read holds one message, then gets the newest', async t => {
  const events = list('/events')
  const mentors = list('/mentors')
  let unsent = 0
  const listener = new Listener('192.0.2.1', [events, mentors], '', () => unsent)
  const read = () => String(listener.read() ?? '')
  t.equal(read(), ':\n\n', 'a comment, which carries the headers')

  t.equal(listener.tell(), 0, 'no list was read yet')
  events.etag = 'a'
  t.equal(listener.tell(), 1)
  unsent = listener.readableLength
  for (const etag of ['b', 'c']) {
    events.etag = etag
    mentors.etag = 'x'
    t.equal(listener.tell(), 0)
    listener.keepAlive()
  }
  t.equal(read(), 'id: a,\ndata: {"list":"/events","etag":"\\"a\\""}\n\n')
  t.equal(listener.tell(), 0, 'the kernel has not accepted the message')
  unsent = 0
  t.equal(listener.tell(), 2)
  t.equal(read(), 'id: c,\ndata: {"list":"/events","etag":"\\"c\\""}\n\n' +
    'id: c,x\ndata: {"list":"/mentors","etag":"\\"x\\""}\n\n')
  listener.keepAlive()
  t.equal(read(), 'event: ping\ndata: {}\n\n', 'a ping has no id, so the client keeps the last')

  listener.end()
  listener.end()
  t.match(read(), /^retry: [12]\d{3}\n\n$/)
  listener.on('error', error => t.fail(error.message))
  events.etag = 'd'
  t.equal(listener.tell(), 0, 'the stream has ended')
  listener.keepAlive()
})

t.test('A stream ends, so that a client whose network is gone does not keep its place', async t => {
  for (const isReading of [true, false]) {
    const ends = new Set<number>()
    for (let n = 0; n < 200; n++) {
      const listener = new Listener('192.0.2.1', [list('/events')], '', () => isReading ? 0 : 1)
      listener.read()
      const sent: string[] = []
      while (!sent.at(-1)?.startsWith('retry') && !listener.destroyed) {
        listener.keepAlive()
        sent.push(String(listener.read() ?? ''))
      }
      ends.add(sent.length)
      const last = sent.pop()
      t.match(last, isReading ? /^retry: [12]\d{3}\n\n$/ : /^$/)
      t.strictSame(new Set(sent), new Set([isReading ? 'event: ping\ndata: {}\n\n' : '']))
      listener.keepAlive()
      t.equal(listener.read(), null)
    }
    // Clients that a restart connects at once do not connect at once again.
    t.strictSame([...ends].sort(), [12, 13, 14, 15, 16, 17, 18, 19, 20])
  }
})

t.test('A client that has gone is told nothing', async t => {
  const events = { ...list('/events'), etag: 'a' }
  const listener = new Listener('192.0.2.1', [events], '', () => 0)
  listener.read()
  listener.destroy()
  t.equal(listener.tell(), 0)
})

t.test('A client hears of no list that was read before its request', async t => {
  const events = { ...list('/events'), etag: 'old', readAt: performance.now() }
  await setImmediate()
  const listener = new Listener('192.0.2.1', [events], '', () => 0)
  listener.read()
  t.equal(listener.tell(), 0)
  Object.assign(events, { etag: 'new', readAt: performance.now() })
  t.equal(listener.tell(), 1)
  t.match(String(listener.read()), /^id: new$/m)
})

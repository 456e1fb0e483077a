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
    listener.keepAlive(1000)
  }
  t.equal(read(), 'id: a,\ndata: {"list":"/events","etag":"\\"a\\""}\n\n')
  t.equal(listener.tell(), 0, 'the kernel has not accepted the message')
  unsent = 0
  t.equal(listener.tell(), 2)
  t.equal(read(), 'id: c,\ndata: {"list":"/events","etag":"\\"c\\""}\n\n' +
    'id: c,x\ndata: {"list":"/mentors","etag":"\\"x\\""}\n\n')
  listener.keepAlive(1000)
  t.equal(read(), 'event: ping\ndata: {}\n\n', 'a ping has no id, so the client keeps the last')

  listener.end(1000)
  t.equal(read(), 'retry: 1000\n\n')
  listener.on('error', error => t.fail(error.message))
  events.etag = 'd'
  t.equal(listener.tell(), 0, 'the stream has ended')
  listener.keepAlive(1000)
})

t.test('A stream ends after 16 pings, so that a client whose network is gone does not keep its place', async t => {
  for (const isReading of [true, false]) {
    let unsent = 0
    const listener = new Listener('192.0.2.1', [list('/events')], '', () => unsent)
    listener.read()
    for (let pings = 1; pings < 16; pings++) {
      listener.keepAlive(1000)
      t.equal(String(listener.read()), 'event: ping\ndata: {}\n\n')
    }
    if (!isReading) unsent = 1
    listener.keepAlive(1000)
    t.equal(listener.destroyed, !isReading)
    if (isReading) t.equal(String(listener.read()), 'retry: 1000\n\n')
    listener.keepAlive(1000)
    t.equal(listener.read(), null)
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

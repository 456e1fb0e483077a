import { Listener } from '#lib/live/listener.js'
import t from '../../suite.ts'

const list = (url: string) =>
  ({ url, etag: undefined as string | undefined, version: undefined, listeners: new Set<Listener>() })

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
  t.equal(read(), ':\n\n', 'a comment has no id, so the client keeps the last')

  listener.end(1000)
  t.equal(read(), 'retry: 1000\n\n')
})

import { setTimeout as sleep } from 'node:timers/promises'

import { LiveLists } from '#lib/live/live-lists.js'
import t from '../../suite.ts'

/** Lists of a database that a test changes: a number per list, which is its entity tag. */
function start () {
  const values: Record<string, number> = { '/slow': 0, '/fast': 0 }
  let snapshot = 0
  const database = {
    change (url: string) {
      values[url]!++
      snapshot++
    },
    isAway: false,
    reads: 0,
    /** Resolves the read of `/slow`. */
    finish: () => {},
  }
  const live = new LiveLists({
    async readSnapshot () {
      if (database.isAway) throw new Error('away')
      return { id: String(snapshot) }
    },
    argumentsOf: () => '[]',
    async readEtag ({ url }) {
      database.reads++
      const etag = String(values[url])
      if (url === '/slow' && snapshot > 0) await new Promise<void>(resolve => { database.finish = resolve })
      return etag
    },
  }, { maxListeners: 100, isClosing: () => false })
  const open = (...urls: string[]) => {
    const stream = live.open('192.0.2.1', urls.map(url => ({ url, base: null })), '', () => 0)!
    t.teardown(() => stream.destroy())
    const client = { stream, text: '' }
    stream.on('data', text => { client.text += text })
    return client
  }
  return { live, open, database }
}

t.test('A slow list delays no other list', async t => {
  const { open, database } = start()
  const [slow, fast] = [open('/slow'), open('/fast')]
  await sleep(10)
  database.change('/slow')
  await sleep(600)
  database.change('/fast')
  await sleep(600)
  t.match(fast.text, /^id: 1$/m)
  t.notMatch(slow.text, /^id: 1$/m)
  database.finish()
  await sleep(10)
  t.match(slow.text, /^id: 1$/m)
})

t.test('Lists are read only after a change, and nothing is asked without clients', async t => {
  const { live, open, database } = start()
  const one = open('/fast')
  await sleep(700)
  t.equal(database.reads, 1)
  one.stream.destroy()
  await sleep(600)
  const { ticks } = live.counts
  await sleep(600)
  t.equal(live.counts.ticks, ticks)
  t.equal(live.clients, 0)
})

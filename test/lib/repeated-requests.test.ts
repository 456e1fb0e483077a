import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import t, { type Test } from 'tap'

import type { DatabaseState } from '#lib/kept-answers.js'
import { repeatResponses } from '#lib/repeated-requests.js'

/** A server in front of what answers the ordinary way, which is the test. */
async function listen (t: Test) {
  const database: { read: () => Promise<DatabaseState> } = { read: async () => 'state 1' }
  const { handle, keep } = repeatResponses(() => database.read(), 1_000_000, 5)
  const arrivals: [IncomingMessage, ServerResponse][] = []
  const server = createServer((request, response) => {
    handle(request, response, (...arrival) => {
      arrivals.push(arrival)
      server.emit('arrival')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo

  return { database, get, arrive }

  /** What is answered to a request. */
  async function get (path = '/', method = 'GET', signal?: AbortSignal) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, ...signal && { signal } })
    return response.text()
  }

  /** Waits for a request that goes the ordinary way. What it returns answers it, and keeps the answer of a state. */
  async function arrive () {
    if (arrivals.length === 0) await once(server, 'arrival')
    const [request, response] = arrivals.shift()!
    return (text: string, state?: DatabaseState) => {
      const headers = { etag: `"${text}"`, 'content-length': text.length }
      if (state !== undefined) keep(request, { headers, bytes: Buffer.from(text), state, route: '/' })
      response.writeHead(200, headers).end(text)
    }
  }
}

type Server = Awaited<ReturnType<typeof listen>>

/** A first request, answered and kept. */
async function ask ({ get, arrive }: Server, text: string, state: DatabaseState = 'state 1') {
  const answer = get()
  const respond = await arrive()
  respond(text, state)
  return answer
}

t.test('a response is repeated in the same state, to the same request', async t => {
  const server = await listen(t)
  t.equal(await ask(server, 'first'), 'first')
  t.equal(await server.get(), 'first')
  for (const [path, method] of [['/other', 'GET'], ['/', 'DELETE']] as const) {
    const answer = server.get(path, method)
    const respond = await server.arrive()
    respond('other')
    t.equal(await answer, 'other')
  }
  t.equal(await server.get(), 'first')
})

t.test('whoever waits for the same state is answered with it', async t => {
  const server = await listen(t)
  await ask(server, 'first')
  let tell!: (state: DatabaseState) => void
  const state = new Promise<DatabaseState>(resolve => { tell = resolve })
  let asked = 0
  server.database.read = () => {
    if (++asked === 3) tell('state 1')
    return state
  }
  const answers = [server.get(), server.get(), server.get()]
  t.strictSame(await Promise.all(answers), ['first', 'first', 'first'])
})

t.test('of those who find another state, one goes the ordinary way for all', async t => {
  const server = await listen(t)
  await ask(server, 'old')
  server.database.read = async () => 'state 2'
  const answers = [server.get(), server.get(), server.get()]
  const respond = await server.arrive()
  respond('new', 'state 2')
  t.strictSame(await Promise.all(answers), ['new', 'new', 'new'])
  t.equal(await server.get(), 'new')
})

t.test('who finds a later state does not take what is read for an earlier one', async t => {
  const server = await listen(t)
  await ask(server, 'old')
  server.database.read = async () => 'state 2'
  const early = server.get()
  const respondEarly = await server.arrive()
  server.database.read = async () => 'state 3'
  const late = server.get()
  const respondLate = await server.arrive()
  respondEarly('read in state 2', 'state 2')
  respondLate('read in state 3', 'state 3')
  t.strictSame(await Promise.all([early, late]), ['read in state 2', 'read in state 3'])
})

t.test('without a state everybody goes the ordinary way', async t => {
  const server = await listen(t)
  server.database.read = async () => null
  t.equal(await ask(server, 'first', null), 'first')
  const answers = [server.get(), server.get()]
  for (const respond of [await server.arrive(), await server.arrive()]) respond('again', null)
  t.strictSame(await Promise.all(answers), ['again', 'again'])
})

t.test('when the state cannot be told everybody goes the ordinary way', async t => {
  const server = await listen(t)
  await ask(server, 'first')
  server.database.read = async () => { throw new Error('no database') }
  const answers = [server.get(), server.get()]
  for (const respond of [await server.arrive(), await server.arrive()]) respond('again')
  t.strictSame(await Promise.all(answers), ['again', 'again'])
})

t.test('what was told already is told to whoever comes later, too', async t => {
  const server = await listen(t)
  await ask(server, 'first')
  const state = Promise.resolve('state 1')
  server.database.read = () => state
  t.equal(await server.get(), 'first')
  t.equal(await server.get(), 'first')
  const failure = Promise.reject(new Error('no database'))
  failure.catch(() => {})
  server.database.read = () => failure
  for (const text of ['second', 'third']) {
    const answer = server.get()
    const respond = await server.arrive()
    respond(text)
    t.equal(await answer, text)
  }
})

t.test('when the one for all gets no response to keep, the others go the ordinary way', async t => {
  const server = await listen(t)
  await ask(server, 'old')
  server.database.read = async () => 'state 2'
  const controller = new AbortController()
  const gone = server.get('/', 'GET', controller.signal)
  await server.arrive()
  server.database.read = async () => {
    // Not before the other one waits for it.
    setImmediate(() => controller.abort())
    return 'state 2'
  }
  const other = server.get()
  await t.rejects(gone, { name: 'AbortError' })
  const respond = await server.arrive()
  respond('new', 'state 2')
  t.equal(await other, 'new')
})

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import t from 'tap'

import { createDatabase } from '../helper.ts'
import { freePort, isListening, start } from '../process.ts'

t.test('A flood of 400 connections from one address does not block sign-ins from another', async t => {
  const PORT = await freePort()
  const url = `http://127.0.0.1:${PORT}`
  start(t, 'dist/lib/server.js', { DATABASE_URL: await createDatabase(), PORT: String(PORT), LOG_LEVEL: 'silent' })
  while (!await isListening(PORT)) await sleep(50)
  const agent = new Agent({ keepAlive: true, localAddress: '127.0.0.2' })
  t.teardown(() => agent.destroy())

  async function post (path: string, body: object) {
    const text = JSON.stringify(body)
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
    const sent = request(`${url}${path}`, { method: 'POST', agent, headers }).end(text)
    const [response] = await once(sent, 'response')
    await json(response)
    return response.statusCode as number
  }

  async function register () {
    const account = { email: `${randomUUID()}@example.org`, password: 'correct horse' }
    t.equal(await post('/auth/register', { ...account, firstName: 'Ada', lastName: 'Lovelace' }), 201)
    return account
  }

  const [honest, flooding] = [await register(), await register()]
  const flood = start(t, 'test/flood.js', {}, { args: [url, '127.0.0.3', '400', JSON.stringify(flooding)] })
  // It is a flood once part of it is rejected.
  while (!flood.output.stdout.includes('503')) await once(flood.child.stdout, 'data')
  const served = () => flood.output.stdout.split('\n').filter(status => status === '200').length

  const before = served()
  const statuses: number[] = []
  for (let n = 0; n < 10; n++) statuses.push(await post('/auth/login', honest))
  const others = served() - before
  t.strictSame(statuses, Array(10).fill(200))
  t.ok(others <= 100, `${others} of the flood were served meanwhile; without turns, 299 would precede each sign-in`)
  while (served() === before) await once(flood.child.stdout, 'data')
  t.pass('the flood is also served')
})

// The start and the stop of the example app. test/browser/walk.ts walks through its pages.
import { once } from 'node:events'

import t from 'tap'

import { createDatabase } from '../helper.ts'
import { freePort, run, start } from '../process.ts'

t.test('the example starts with the demo data, and stops on SIGTERM', async t => {
  const [PORT, APP_PORT] = [String(await freePort()), String(await freePort())]
  const DATABASE_URL = await createDatabase()
  const { child, output, ended } = start(t, 'examples/spa/start.js', {
    DATABASE_URL, PORT, APP_PORT, TZ: 'America/Los_Angeles',
  })
  while (!output.stdout.includes('Ctrl-C') && child.exitCode === null) {
    await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])
  }
  t.match(await (await fetch(`http://127.0.0.1:${APP_PORT}/events`)).text(), '<script type="module"')
  const send = async (method: string, path: string, body?: object, token?: string) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
    return (await fetch(`http://127.0.0.1:${PORT}${path}`, {
      method, ...body && { headers, body: JSON.stringify(body) },
    })).json()
  }
  t.match(await send('GET', '/events'), { events: [{ title: String }] })
  const { token } = await send('POST', '/auth/login', { email: 'head@demo.example.org', password: 'demo-password' }) as
    { token: string }
  const event = { title: 'Open day', description: 'Come and see', imageUrl: 'data:,', data: '2030-05-01T18:00' }
  t.match(await send('POST', '/events', event, token), { event: { date: '2030-05-01T18:00:00.000Z' } })
  child.kill('SIGTERM')
  t.match(await ended, { code: 0, stderr: '' })
})

t.test('the example reports an invalid port in one line', async t => {
  const { code, stderr } = await run(t, 'examples/spa/start.js', { APP_PORT: 'here' })
  t.strictSame({ code, stderr }, { code: 1, stderr: 'APP_PORT must be a port number from 1 to 65535\n' })
})

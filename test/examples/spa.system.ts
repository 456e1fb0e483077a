// The start and the stop of the example app. test/browser/walk.ts walks through its pages.
import { once } from 'node:events'

import t from 'tap'

import { createDatabase } from '../helper.ts'
import { freePort, run, start } from '../process.ts'

t.test('the example starts with the demo data, and stops on SIGTERM', async t => {
  const [PORT, APP_PORT] = [String(await freePort()), String(await freePort())]
  const DATABASE_URL = await createDatabase(t)
  const { child, output, ended } = start(t, 'examples/spa/start.js', { DATABASE_URL, PORT, APP_PORT })
  while (!output.stdout.includes('Ctrl-C') && child.exitCode === null) {
    await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])
  }
  t.match(await (await fetch(`http://127.0.0.1:${APP_PORT}/events`)).text(), '<script type="module"')
  t.match(await (await fetch(`http://127.0.0.1:${PORT}/events`)).json(), { events: [{ title: String }] })
  child.kill('SIGTERM')
  t.match(await ended, { code: 0, stderr: '' })
})

t.test('the example reports an invalid port in one line', async t => {
  const { code, stderr } = await run(t, 'examples/spa/start.js', { APP_PORT: 'here' })
  t.strictSame({ code, stderr }, { code: 1, stderr: 'APP_PORT must be a port number from 1 to 65535\n' })
})

// The start of the example app. test/browser/walk.ts walks through its pages.
import t from 'tap'

import { run } from '../process.ts'

t.test('the example reports an invalid port in one line', async t => {
  const { code, stderr } = await run(t, 'examples/spa/start.js', { APP_PORT: 'here' })
  t.strictSame({ code, stderr }, { code: 1, stderr: 'APP_PORT must be a port number from 1 to 65535\n' })
})

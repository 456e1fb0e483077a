import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import t from 'tap'

import { start } from '../process.ts'

/** A service that says what is done with it, and does not stop. */
const SERVICE = `
  import { createLogger } from '#lib/http/logger.js'
  import { run } from '#lib/lifecycle.js'
  setInterval(() => {}, 1000)
  const never = () => new Promise(() => {})
  const service = { start: async () => {}, stop: never, close: never, kill () { console.log('killed') } }
  await run(service, createLogger('info'), 0.2)
  console.log('started')
`

t.test('A service that does not stop in time is killed', async t => {
  const file = join(t.testdir(), 'service.mjs')
  await writeFile(file, SERVICE)
  const { child, output, ended } = start(t, file, {}, { covered: true })
  while (!output.stdout.includes('started')) await sleep(10)
  child.kill('SIGTERM')
  const { code, stdout } = await ended
  t.equal(code, 1)
  t.match(stdout, 'killed by timeout (200ms)')
  t.match(stdout, /^killed$/m)
})

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import t, { type Test } from 'tap'

import { buildApp } from '#lib/app.js'
import { shutdownTimeouts } from '#lib/config/timeout.js'
import { guardOf } from '#plugins/auth.js'
import { createDatabase, testConfig } from '../helper.ts'
import { start } from '../process.ts'

const DEFAULTS = shutdownTimeouts(testConfig({}))

t.test('The timeouts of a shutdown add up', async t => {
  t.strictSame(DEFAULTS, { operation: 20, connections: 25, total: 37 })
  const slower = shutdownTimeouts(testConfig({ STOP_DELAY: '3', DATABASE_TIMEOUT: '60' }))
  t.strictSame(slower, { operation: 130, connections: 135, total: 204 })
  const traced = shutdownTimeouts(testConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' }))
  t.strictSame(traced, { operation: 20, connections: 25, total: 39 })
})

t.test('No operation may exceed them', async t => {
  const DATABASE_URL = await createDatabase()
  for (const DATABASE_TIMEOUT of ['5', '60']) {
    const config = testConfig({ DATABASE_URL, DATABASE_TIMEOUT })
    const app = buildApp(config)
    t.teardown(() => app.close())
    const times: number[] = []
    app.addHook('onRoute', route => {
      const lookup = guardOf(route) ? config.DATABASE_TIMEOUT : 0
      times.push(lookup + config.DATABASE_TIMEOUT + (route.config?.extraSeconds ?? 0))
    })
    await app.ready()
    t.equal(Math.max(...times), shutdownTimeouts(config).operation, DATABASE_TIMEOUT)
  }
})

t.test('By default, orchestrators wait longer, and the documents say so', async t => {
  const [compose, dockerfile, operations] = await Promise.all(
    ['compose.yaml', 'Dockerfile', 'docs/run/operate.md'].map(file => readFile(file, 'utf8'))
  )
  const [, seconds] = /^ +stop_grace_period: (\d+)s$/m.exec(compose!)!
  t.ok(Number(seconds) > DEFAULTS.total)
  t.match(compose, `up to ${DEFAULTS.total} seconds`)
  t.match(dockerfile, `up to ${DEFAULTS.total} seconds`)
  t.match(dockerfile, `--stop-timeout ${seconds}`)
  t.match(operations, `${DEFAULTS.total} seconds`)
})

/** A service whose stop never ends, or fails with the error of the second argument. */
const SERVICE = `
  import { createLogger } from '#lib/http/logger.js'
  import { run } from '#lib/shutdown.js'
  setInterval(() => {}, 1000)
  process.on('SIGWINCH', () => { throw new Error('provoked') })
  const never = () => new Promise(() => {})
  const [, , seconds, error] = process.argv
  const stop = () => error ? Promise.reject(new Error(error)) : never()
  const service = { listen: async () => {}, stop, close: never }
  await run(service, {}, createLogger('info'), Number(seconds))
  console.log('started')
`

t.test('A start that fails tells why, even if its connections cannot be closed', async t => {
  const file = join(t.testdir(), 'service.mjs')
  await writeFile(file, `
    import { createLogger } from '#lib/http/logger.js'
    import { run } from '#lib/shutdown.js'
    const fail = message => async () => { throw new Error(message) }
    await run({ listen: fail('no port'), close: fail('no end') }, {}, createLogger('info'), 1)
  `)
  const { code, stdout } = await start(t, file, {}, { covered: true }).ended
  t.equal(code, 1)
  t.match(stdout, 'no port')
  t.notMatch(stdout, 'no end')
})

async function startStuckService (t: Test, seconds: number, error = '') {
  const file = join(t.testdir(), 'service.mjs')
  await writeFile(file, SERVICE)
  const service = start(t, file, {}, { covered: true, args: [String(seconds), error] })
  await logged(service, 'started')
  return service
}

async function logged ({ output }: ReturnType<typeof start>, text: string) {
  while (!output.stdout.includes(text)) await sleep(10)
}

t.test('A service that does not stop in time is killed', async t => {
  const { child, ended } = await startStuckService(t, 0.2)
  child.kill('SIGTERM')
  const { code, stdout } = await ended
  t.equal(code, 1)
  t.match(stdout, 'killed by timeout (200ms)')
})

t.test('A stop that fails is logged, and ends the process with 1', async t => {
  const { child, ended } = await startStuckService(t, 60, 'provoked')
  child.kill('SIGTERM')
  const { code, stdout } = await ended
  t.equal(code, 1)
  t.match(stdout, /"message":"provoked".*"msg":"Cannot stop cleanly"/)
})

t.test('An uncaught error during a stop ends the process at once', async t => {
  const service = await startStuckService(t, 60)
  service.child.kill('SIGTERM')
  await logged(service, 'Stopping on SIGTERM')
  service.child.kill('SIGWINCH')
  const { code, stdout } = await service.ended
  t.equal(code, 1)
  t.match(stdout, 'Stopping after an uncaught error')
  t.notMatch(stdout, 'killed by timeout')
})

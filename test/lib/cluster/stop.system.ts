import { readdir } from 'node:fs/promises'
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import t from 'tap'

import { dataDir, postgresOf, remaining, type Service, signalGroup, start } from '../../process.ts'
import { agentOfEach, linesOf, send, startWorkers, until } from '../../workers.ts'

t.test('A stop under load loses no response and no line of the log', async t => {
  const service = await startWorkers(t, { STOP_DELAY: '1' })
  const completed = () => linesOf(service).filter(({ msg }) => msg === 'request completed')
  const agents = await agentOfEach(t, service)
  const before = completed().length
  while (agents.length < 16) agents.push(new Agent({ keepAlive: true, maxSockets: 1 }))
  let received = 0
  const lost: unknown[] = []
  const clients = agents.map(async agent => {
    for (let isStopping = false; !isStopping;) {
      try {
        const { status, headers } = await send(service, '/clubs', { agent })
        received++
        if (status !== 200) lost.push(status)
        isStopping = headers.connection === 'close'
      } catch (error) {
        lost.push(error)
        break
      }
    }
    agent.destroy()
  })
  await until(() => received >= 500)
  service.child.kill('SIGTERM')
  await Promise.all(clients)
  t.strictSame(lost, [])
  const { code, stderr } = await service.ended
  t.strictSame({ code, stderr }, { code: 0, stderr: '' })
  const lines = completed().slice(before)
  t.equal(lines.length, received)
  t.equal(new Set(lines.map(({ pid }) => pid)).size, 2)
})

const THROUGH_NPM: [what: string, signal: NodeJS.Signals, send: (service: Service) => unknown][] = [
  ['SIGTERM to npm', 'SIGTERM', ({ child }) => child.kill('SIGTERM')],
  ['SIGTERM to all processes', 'SIGTERM', ({ child }) => signalGroup(child, 'SIGTERM')],
  ['Ctrl-C', 'SIGINT', ({ child }) => signalGroup(child, 'SIGINT')],
]
for (const [what, signal, stop] of THROUGH_NPM) {
  t.test(`npm start, ${what}: all workers drain, and npm ends with 0`, async t => {
    const service = await startWorkers(t, { STOP_DELAY: '1' }, { npm: true })
    const workers = await service.workers()
    stop(service)
    await until(() => service.messages().includes(`Stopping on ${signal}`))
    await sleep(300)
    t.equal((await send(service, '/livez')).status, 200)
    t.equal((await send(service, '/readyz')).status, 503)
    t.equal((await service.ended).code, 0)
    t.equal(linesOf(service).filter(({ msg }) => msg.startsWith('Stopping on')).length, 3)
    t.strictSame(await remaining(workers), [])
  })
}

t.test('A second Ctrl-C ends all at once', async t => {
  const service = await startWorkers(t, { STOP_DELAY: '3600' }, { group: true })
  const workers = await service.workers()
  signalGroup(service.child, 'SIGINT')
  await until(() => service.messages().includes('Stopping on SIGINT'))
  await sleep(1000)
  t.equal((await send(service, '/livez')).status, 200)
  signalGroup(service.child, 'SIGINT')
  t.equal((await service.ended).code, 1)
  t.strictSame(await remaining(workers), [])
})

t.test('A worker that is killed while it stops fails the stop', async t => {
  const service = await startWorkers(t, { STOP_DELAY: '3600' }, { covered: true })
  const [first, second] = await service.workers() as [number, number]
  service.child.kill('SIGTERM')
  await until(() => linesOf(service).filter(({ msg }) => msg === 'Stopping on SIGTERM').length === 3)
  process.kill(first, 'SIGKILL')
  process.kill(second, 'SIGKILL')
  t.equal((await service.ended).code, 1)
  t.ok(linesOf(service).some(({ err }) => /^Worker \d+ ended by SIGKILL$/.test(err?.message ?? '')))
})

t.test('No worker outlives the supervisor', async t => {
  const service = await startWorkers(t)
  const workers = await service.workers()
  service.child.kill('SIGKILL')
  await service.ended
  t.strictSame(await remaining(workers), [])
})

t.test('A stop while it starts ends with 0, and leaves nothing', async t => {
  const DATA_DIR = dataDir(t)
  const variables = { DATA_DIR, PORT: '0', WORKERS: '2' }
  const { child, output, ended } = start(t, 'dist/lib/server.js', variables, { covered: true })
  await until(() => output.stdout.includes('Creating the embedded PostgreSQL') ||
    readdir(DATA_DIR).then(files => files.length > 0, () => false))
  child.kill('SIGTERM')
  const { code, stderr } = await ended
  t.strictSame({ code, stderr }, { code: 0, stderr: '' })
  t.strictSame(await postgresOf(DATA_DIR), [])
})

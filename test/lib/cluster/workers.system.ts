import { readdir } from 'node:fs/promises'
import { Agent } from 'node:http'

import t from 'tap'

import { nextBackoff } from '#lib/cluster/supervisor.js'
import { VERSION } from '#lib/config.js'
import { dataDir, isListening, postgresOf, remaining } from '../../process.ts'
import { agentOfEach, linesOf, METRICS_TOKEN, ready, sample, send, startWorkers, until } from '../../workers.ts'

const CLUBS = 'http_request_duration_seconds_count{method="GET",route="/clubs",status="200"}'
const ADMIN = { ADMIN_EMAIL: 'admin@example.org', ADMIN_PASSWORD: 'correct horse' }

t.test('Two processes serve on one port, with one log', async t => {
  const service = await startWorkers(t, { ...ADMIN, METRICS_TOKEN, DATABASE_POOL_SIZE: '3' }, { covered: true })
  const workers = await service.workers()
  t.equal(workers.length, 2)
  const agents = await agentOfEach(t, service)
  const responses = await Promise.all(agents.map(agent => send(service, '/clubs', { agent })))
  t.strictSame(responses.map(({ status }) => status), [200, 200])
  const login = { method: 'POST', body: { email: ADMIN.ADMIN_EMAIL, password: ADMIN.ADMIN_PASSWORD } }
  const { body: { token } } = await send(service, '/auth/login', login)
  const headers = { authorization: `Bearer ${token}` }
  for (const agent of agents) {
    t.equal((await send(service, '/auth/me', { agent, headers })).status, 200, 'a token is one of all')
  }
  t.equal(await ready(service), true)

  await t.test('the metrics are those of all', async t => {
    const clubs = linesOf(service).filter(({ path, msg }) => path === '/clubs' && msg === 'request completed')
    t.equal(await sample(service, CLUBS), clubs.length)
    t.equal(await sample(service, 'database_pool_connections'), 3)
    t.ok(await sample(service, 'process_resident_memory_bytes') > 3 * 40e6, 'of three processes')
    t.ok(Math.abs(await sample(service, 'process_start_time_seconds') - Date.now() / 1000) < 300)
    t.equal(await sample(service, `build_info{version="${VERSION}",node="${process.version}"}`), 1)
  })

  const port = Number(new URL(service.url).port)
  service.child.kill('SIGTERM')
  const { code, stderr } = await service.ended
  t.strictSame({ code, stderr }, { code: 0, stderr: '' })
  t.equal(await isListening(port), false)
  t.strictSame(await remaining(workers), [])
  const lines = linesOf(service)
  const served = lines.filter(({ msg }) => msg === 'request completed').map(({ pid }) => pid)
  t.strictSame([...new Set(served)].sort(), workers.sort(), 'both have served')
  t.strictSame(lines.filter(({ msg }) => msg === 'Stopping on SIGTERM').map(({ pid }) => pid).sort(),
    [service.pid, ...workers].sort())
  t.equal(lines.filter(({ msg }) => msg === 'Admin account created from ADMIN_EMAIL').length, 1)
})

t.test('A worker that is killed is restarted, with a backoff, and what it has counted stays', async t => {
  // As when a message to a worker cannot be sent.
  const prelude = `import cluster from 'node:cluster'
    cluster.on('fork', worker => process.on('SIGWINCH', () => worker.emit('error', new Error('provoked'))))`
  const service = await startWorkers(t, { METRICS_TOKEN }, { covered: true, prelude })
  process.kill(service.pid, 'SIGWINCH')
  await until(() => service.messages().filter(message => message === 'Worker failed').length === 2)
  for (let n = 0; n < 10; n++) await send(service, '/clubs')
  t.equal(await sample(service, CLUBS), 10)

  const [first, second] = await service.workers() as [number, number]
  process.kill(first, 'SIGKILL')
  await until(async () => !await ready(service))
  t.equal((await send(service, '/clubs')).status, 200, 'the other one serves')
  t.equal(await sample(service, CLUBS), 11)
  await until(() => ready(service))
  t.equal(await sample(service, CLUBS), 11)
  const [third] = (await service.workers()).filter(pid => pid !== second) as [number]
  t.not(third, first)

  process.kill(third, 'SIGKILL')
  let fourth: number | undefined
  await until(async () => {
    fourth = (await service.workers()).find(pid => ![second, third].includes(pid))
    return fourth
  })
  process.kill(fourth!, 'SIGKILL')
  await until(() => service.messages().filter(message => message.startsWith('Worker ended')).length === 3)
  t.match(linesOf(service).filter(({ msg }) => msg.startsWith('Worker ended')), [
    { worker: first, msg: 'Worker ended by SIGKILL, the next one starts in 0.5 s' },
    { worker: third, msg: 'Worker ended by SIGKILL, the next one starts in 1 s' },
    {
      worker: fourth,
      msg: 'Worker ended by SIGKILL, the next one starts in 2 s',
      err: { message: /^Worker [12] of 2 ended by SIGKILL before it served$/ },
    },
  ])
  t.equal((await send(service, '/clubs')).status, 200)
  service.child.kill('SIGTERM')
  t.equal((await service.ended).code, 0, 'it does not wait for the backoff')
})

t.test('A worker that is killed leaves no connection silent', async t => {
  const service = await startWorkers(t)
  const end = new AbortController()
  const silent: unknown[] = []
  const clients = Array.from({ length: 16 }, async () => {
    while (!end.signal.aborted) {
      await send(service, '/livez').catch(error => { if (error.name === 'AbortError') silent.push(error) })
    }
  })
  for (const worker of await service.workers()) {
    process.kill(worker, 'SIGKILL')
    await until(async () => !(await service.workers()).includes(worker))
    await until(() => ready(service))
  }
  end.abort()
  await Promise.all(clients)
  t.strictSame(silent, [])
})

t.test('The backoff doubles up to a bound, and is over when a worker has served for a minute', async t => {
  const backoffs = [0]
  while (backoffs.length < 9) backoffs.push(nextBackoff(backoffs.at(-1)!, 59_999))
  t.strictSame(backoffs, [0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  t.equal(nextBackoff(30_000, 60_000), 0)
})

t.test('It is ready when all workers are', async t => {
  const variables = { DATABASE_TIMEOUT: '1', STOP_DELAY: '1', METRICS_TOKEN, DATABASE_POOL_SIZE: '3' }
  const service = await startWorkers(t, variables, { covered: true })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  await send(service, '/clubs', { agent, headers: { 'x-request-id': 'first' } })
  const lineOfFirst = () => linesOf(service).find(({ reqId }) => reqId === 'first')
  await until(lineOfFirst)
  const other = (await service.workers()).find(pid => pid !== lineOfFirst()!.pid)!
  t.equal(await sample(service, 'database_pool_connections', agent), 3)

  process.kill(other, 'SIGSTOP')
  t.equal((await send(service, '/readyz', { agent })).status, 503, 'one does not respond')
  t.equal(await sample(service, 'database_pool_connections', agent), 3, 'it counts as it did in its last response')
  process.kill(other, 'SIGCONT')
  await until(() => ready(service))

  process.kill(other, 'SIGTERM')
  await until(() => linesOf(service).some(({ msg, pid }) => msg === 'Stopping on SIGTERM' && pid === other))
  t.equal((await send(service, '/readyz', { agent })).status, 503, 'one is about to stop')
  await until(() => service.messages().some(message => message.startsWith('Worker ended by exit code 0')))
  await until(() => ready(service))
  service.child.kill('SIGTERM')
  t.equal((await service.ended).code, 0)
})

t.test('The embedded database is started once, serves all, and is stopped with them', async t => {
  const DATA_DIR = dataDir(t)
  const service = await startWorkers(t, { DATA_DIR, ...ADMIN })
  const migrations = (await readdir('migrations')).length
  t.strictSame(service.messages().filter(message => !/^(Server listening|All 2)/.test(message)), [
    `Creating the embedded PostgreSQL in ${DATA_DIR}/postgres (first start only)`,
    `Database schema brought up to date: ${migrations} migrations`,
    'Admin account created from ADMIN_EMAIL',
  ])
  const [worker] = await service.workers()
  process.kill(worker!, 'SIGKILL')
  await until(async () => !await ready(service))
  await until(() => ready(service))
  const processes = await postgresOf(DATA_DIR)
  t.ok(processes.length > 1)
  service.child.kill('SIGTERM')
  t.equal((await service.ended).code, 0)
  t.strictSame(await remaining(processes), [])
})

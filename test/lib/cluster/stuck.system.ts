import { setTimeout as sleep } from 'node:timers/promises'

import t from 'tap'

import { shutdownTimeouts } from '#lib/shutdown.js'
import { createDatabase } from '../../helper.ts'
import { childrenOf, remaining, startService } from '../../process.ts'

t.test('A worker that cannot even give up is killed when the stop takes too long', async t => {
  const timeouts = { STOP_DELAY: 0, DATABASE_TIMEOUT: 1 }
  const service = await startService(t, {
    DATABASE_URL: await createDatabase(t), WORKERS: '2', STOP_DELAY: '0', DATABASE_TIMEOUT: '1',
  }, { covered: true })
  while (!service.messages().includes('All 2 workers are ready')) await sleep(20)
  const ready = service.output.stdout.split('\n').find(line => line.includes('All 2 workers'))!
  const workers = await childrenOf(JSON.parse(ready).pid)
  t.equal(workers.length, 2)
  process.kill(workers[0]!, 'SIGSTOP')
  const start = performance.now()
  service.child.kill('SIGTERM')
  const { code, stdout } = await service.ended
  t.equal(code, 1)
  const waited = performance.now() - start
  t.ok(waited >= shutdownTimeouts(timeouts).total * 1000 - 100, 'after as long as a stop may take')
  t.match(stdout, 'killed by timeout')
  t.strictSame(await remaining(workers), [])
})

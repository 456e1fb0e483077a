import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { BESIDE_LISTENERS, BESIDE_TOLD_LISTENERS, LISTENERS, WITHOUT_LISTENERS } from './cases.ts'
import { amountsOf, createFixture, prepareCommits, SERVICE, startService } from './fixture.ts'
import { compare, cpuSeconds, measure, startRepeating } from './measure.ts'
import { interrupted, type Server } from './programs.ts'
import { atMost, fastEnough } from './results.ts'
import { type Context, TURNS } from './scenarios.ts'

/** Measures what clients of `GET /live` cost: the rate of hits with and without them in turns, and processor time. */
export async function measureLive ({ results, postgres, directory, quick, only }: Context) {
  const cases = [BESIDE_LISTENERS, BESIDE_TOLD_LISTENERS].filter(({ name }) => only.test(name))
  if (cases.length === 0) return
  const fixture = await createFixture(postgres, 'live', amountsOf(quick).main, directory)
  const service = await startService(fixture)
  const commit = await prepareCommits(fixture)
  for (const operation of cases) {
    const { name, commits } = operation
    const writer = commits ? startRepeating(1000 / commits, commit) : undefined
    // Under load, the memory of new streams moves to the old generation, which happens once. So the second run counts.
    const runTwice = async (name: string) => {
      await measure(results, fixture, { ...service, name }, operation)
      return measure(results, fixture, { ...service, name }, operation)
    }
    const run = async () => {
      const close = await listen(service)
      return runTwice(SERVICE).finally(close)
    }
    const runWithout = () => runTwice(WITHOUT_LISTENERS)
    await compare(results, [{ run }, { run: runWithout }], quick ? TURNS.quick : TURNS.judged)
    results.goals[`${name}, of ${WITHOUT_LISTENERS}`] = [
      fastEnough(results.ratio(name, SERVICE, WITHOUT_LISTENERS), 0.95),
    ]

    const seconds = quick ? 5 : 15
    const without = await shareOfCore(service, seconds)
    const close = await listen(service)
    const share = await shareOfCore(service, seconds) - without
    await close()
    await writer?.stop()
    const listeners = `${LISTENERS.toLocaleString('en')} listeners ${commits ? `and ${commits} commits/s` : 'at rest'}`
    results.goals[`${listeners}: processor time`] = [atMost(100 * share, commits ? 20 : 2, ' % of a core')]
  }
  await service.stop()
  await fixture.drop()
}

/** Percentage of a core that a server uses, as a fraction. */
async function shareOfCore (service: Server, seconds: number) {
  const before = await cpuSeconds(service)
  await sleep(1000 * seconds, undefined, { signal: interrupted })
  return (await cpuSeconds(service) - before) / seconds
}

/** Opens the streams. Returns a function that closes them. */
async function listen ({ url }: Server) {
  const { port, host } = new URL(url)
  const sockets = Array.from({ length: LISTENERS }, () => connect(Number(port), '127.0.0.1'))
  await Promise.all(sockets.map(async socket => {
    socket.write(`GET /live?list=/events HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    let text = ''
    // The rest is read and ignored.
    socket.setEncoding('utf8').on('data', data => { if (text.length < 2000) text += data })
    while (!text.includes('\ndata: ')) await once(socket, 'data', { signal: interrupted })
  }))
  return async () => {
    await Promise.all(sockets.map(socket => once(socket.destroy(), 'close')))
    // The service notices that they have gone.
    await sleep(500)
  }
}

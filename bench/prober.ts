import { Agent, get } from 'node:http'

import { percentile } from './statistics.ts'

/** What a stream of light requests saw, in milliseconds. */
export interface Probe {
  requests: number
  p50: number
  p99: number
  max: number
}

/** Sends a request every so many milliseconds, whether those before are answered or not, until it is stopped. */
export function startProber (url: string, interval: number) {
  const agent = new Agent({ keepAlive: true })
  const latencies: number[] = []
  const failures: string[] = []
  const open = new Set<Promise<void>>()

  function probe () {
    const start = performance.now()
    const answered = new Promise<void>(resolve => {
      get(url, { agent }, response => response.resume().on('end', () => {
        latencies.push(performance.now() - start)
        if (response.statusCode !== 200) failures.push(String(response.statusCode))
        resolve()
      })).on('error', error => {
        failures.push(error.message)
        resolve()
      })
    })
    open.add(answered)
    answered.finally(() => open.delete(answered))
  }
  const timer = setInterval(probe, interval).unref()

  return {
    async stop (): Promise<Probe> {
      clearInterval(timer)
      await Promise.all(open)
      agent.destroy()
      if (failures.length > 0) throw new Error(`${url} failed beside the load: ${[...new Set(failures)].join(', ')}`)
      return {
        requests: latencies.length,
        p50: percentile(latencies, 50),
        p99: percentile(latencies, 99),
        max: percentile(latencies, 100),
      }
    },
  }
}

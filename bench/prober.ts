import { Agent, get } from 'node:http'

/**
 * Sends a request every so many milliseconds, whether those before are answered or not, until it is stopped; it then
 * tells how many milliseconds each answer took.
 */
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
    async stop () {
      clearInterval(timer)
      await Promise.all(open)
      agent.destroy()
      if (failures.length > 0) throw new Error(`${url} failed beside the load: ${[...new Set(failures)].join(', ')}`)
      return latencies
    },
  }
}

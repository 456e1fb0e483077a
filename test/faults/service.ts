import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { freePort } from '../process.ts'
import { SECRET } from './fixture.ts'
import { send } from './http.ts'
import { startProcess, type Program } from './programs.ts'
import type { Teardown } from '../scope.ts'

/** The script that starts the service. */
const START = fileURLToPath(new URL('bin/start', import.meta.resolve('#package.json')))

export interface Service extends Program {
  url: string
}

/**
 * Starts the service as a child process until the scope ends, and waits until it is ready. It runs in the control group
 * whose file of processes is given.
 */
export async function startService (
  scope: Teardown, directory: string, environment: NodeJS.Dict<string>, group?: string
): Promise<Service> {
  const port = environment.PORT ?? String(await freePort())
  const url = `http://127.0.0.1:${port}`
  const command = group ? ['sh', '-c', 'echo $$ > "$0" && exec "$1"', group, START] : [START]
  const program = await startProcess(scope, directory, command, () => isReady(url), {
    name: `service-${port}`,
    environment: { NODE_ENV: 'production', JWT_SECRET: SECRET, PORT: port, ...environment },
  })
  return { url, ...program }
}

async function isReady (url: string) {
  return (await send(url, { method: 'GET', path: '/readyz' })).status === 200
}

/** Polls the readiness, and records when it was lost and found again. */
export function watchReadiness (url: string) {
  const watch = { ready: true, lost: 0, found: 0, stop }
  const stopping = new AbortController()
  const watching = (async () => {
    while (!stopping.signal.aborted) {
      const ready = await isReady(url)
      if (watch.ready && !ready) watch.lost = performance.now()
      if (!watch.ready && ready) watch.found = performance.now()
      watch.ready = ready
      await sleep(50)
    }
  })()
  return watch

  async function stop () {
    stopping.abort()
    await watching
  }
}

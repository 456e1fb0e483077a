import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { freePort } from '../process.ts'
import { SECRET } from './fixture.ts'
import { send } from './http.ts'
import type { Scope } from '../scope.ts'

/** The script that starts the service. */
const START = fileURLToPath(new URL('bin/start', import.meta.resolve('#package.json')))

/** How long the service may take to become ready, in milliseconds. */
const TIMEOUT = 30_000

export interface Service {
  url: string
  child: ChildProcess
  /** Resolves when the process has ended. */
  ended: Promise<{ code: number | null, signal: NodeJS.Signals | null }>
  /** Its log so far. */
  log (): Promise<string>
}

/**
 * Starts the service as a child process until the scope ends, and waits until it is ready. It runs in the control group
 * whose file of processes is given.
 */
export async function startService (
  scope: Scope, directory: string, environment: NodeJS.Dict<string>, group?: string
): Promise<Service> {
  const port = environment.PORT ?? String(await freePort())
  const url = `http://127.0.0.1:${port}`
  const file = join(directory, `service-${port}.log`)
  const output = openSync(file, 'a')
  // Not configured by the environment of the tests.
  const [command, ...args] = group ? ['sh', '-c', 'echo $$ > "$0" && exec "$1"', group, START] : [START]
  const child = spawn(command!, args, {
    cwd: directory,
    env: { PATH: process.env.PATH, NODE_ENV: 'production', JWT_SECRET: SECRET, PORT: port, ...environment },
    stdio: ['ignore', output, output],
  })
  closeSync(output)
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  scope.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const log = () => readFile(file, 'utf8')

  const deadline = performance.now() + TIMEOUT
  while (!await isReady(url)) {
    if (performance.now() > deadline || child.exitCode !== null) {
      throw new Error(`The service does not start:\n${(await log()).slice(-2000)}`)
    }
    await sleep(50)
  }
  return { url, child, ended, log }
}

export async function isReady (url: string) {
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

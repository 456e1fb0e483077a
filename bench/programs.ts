import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import { StartupError } from '#lib/startup-error.js'
import { atEnd, interrupted } from './cleanup.ts'

/** How long a server may take until it answers, and until it has stopped, in milliseconds. */
const PATIENCE = 30_000

/** What programs see of the environment: nothing that could configure them, or that npm added. */
const ENVIRONMENT = { PATH: process.env.PATH, HOME: process.env.HOME, LANG: process.env.LANG }

interface RunOptions {
  cwd?: string
  env?: NodeJS.Dict<string>
}

/** Runs a program to its end and returns what it wrote. Throws with its last words when it fails. */
export async function run (program: string, args: string[], { cwd, env }: RunOptions = {}) {
  try {
    const { stdout } = await promisify(execFile)(program, args, {
      cwd, env: { ...ENVIRONMENT, ...env }, signal: interrupted, maxBuffer: 2 ** 26,
    })
    return stdout
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string }
    throw new Error(`${program} failed: ${stderr.trim().split('\n').slice(-5).join('\n') || message}`, { cause: error })
  }
}

/** A server in a process of its own. */
export interface Server {
  name: string
  url: string
  pid: number
  stop (): Promise<void>
}

interface ServerOptions {
  name: string
  /** Node.js when there is none. */
  program?: string
  script?: string
  /** Where it runs, and where its log goes. */
  directory: string
  env: NodeJS.Dict<string>
  /** A path that answers once it is up. */
  ready: string
}

/** Starts a program that listens on PORT, and waits until it answers. Throws with the end of its log. */
export async function startServer (
  { name, program = process.execPath, script, directory, env, ready }: ServerOptions
): Promise<Server> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const log = join(directory, `${name}-${port}.log`)
  const output = openSync(log, 'a')
  const child = spawn(program, script ? [script] : [], {
    cwd: directory,
    env: { ...ENVIRONMENT, NODE_ENV: 'production', PORT: String(port), ...env },
    stdio: ['ignore', output, output],
  })
  closeSync(output)
  const ended = once(child, 'close')

  async function stop () {
    child.kill('SIGTERM')
    await Promise.race([ended, sleep(PATIENCE, undefined, { ref: false })])
    child.kill('SIGKILL')
    await ended
  }
  atEnd(stop)

  const deadline = Date.now() + PATIENCE
  while (!await answers(url + ready)) {
    interrupted.throwIfAborted()
    if (Date.now() > deadline || child.exitCode !== null) {
      throw new Error(`${name} does not start:\n${(await readFile(log, 'utf8')).slice(-2000)}`)
    }
    await sleep(50)
  }
  return { name, url, pid: child.pid!, stop }
}

async function answers (url: string) {
  return fetch(url).then(async response => {
    await response.arrayBuffer()
    return response.ok
  }, () => false)
}

async function freePort () {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await promisify(server.close.bind(server))()
  return port
}

/** What must be installed, how to see that it is, and Debian's package of it. */
const REQUIREMENTS = [
  { program: 'wrk', works: 'command -v wrk', debian: 'wrk' },
  // The client packages bring a command of that name which only says that the server's package is missing.
  { program: 'pgbench', works: 'pgbench --version', debian: 'postgresql' },
]

/** Throws a StartupError unless what the benchmark cannot bring along is there. */
export async function assertRequirements () {
  if (process.platform !== 'linux') throw new StartupError('The benchmark reads /proc: it runs on Linux only')
  const missing = []
  for (const { program, works, debian } of REQUIREMENTS) {
    if (!await run('sh', ['-c', works]).then(() => true, () => false)) missing.push({ program, debian })
  }
  if (missing.length > 0) {
    throw new StartupError(`The benchmark needs ${missing.map(({ program }) => program).join(' and ')}: ` +
      `apt-get install ${missing.map(({ debian }) => debian).join(' ')}`)
  }
}

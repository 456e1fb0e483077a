import { execFile, spawn } from 'node:child_process'
import { once, setMaxListeners } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { freePort } from '../test/process.ts'
import { get } from './http.ts'

/** The folder of the project. */
export const ROOT = fileURLToPath(new URL('.', import.meta.resolve('#package.json')))

/** The path of a source file of the benchmark, and of a compiled one. */
export const source = (path: string) => `${ROOT}bench/${path}`
export const compiled = (path: string) => `${ROOT}dist/bench/${path}`

/** Timeout of start and stop. */
const TIMEOUT = 30_000

/** The environment of programs, without variables that configure them or that npm adds. */
const ENVIRONMENT = { PATH: process.env.PATH, HOME: process.env.HOME, LANG: process.env.LANG }

/** Aborted by Ctrl-C, which ends all waiting. */
const interruption = new AbortController()
export const interrupted = interruption.signal
setMaxListeners(0, interrupted)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => interruption.abort())

const cleanups: (() => unknown)[] = []

/** Registers a cleanup task. The last one runs first. */
export const atEnd = (task: () => unknown) => { cleanups.push(task) }

/** Runs all cleanup tasks, even if some fail. */
export async function cleanUp () {
  for (const task of cleanups.reverse()) await Promise.resolve().then(task).catch(console.error)
}

/** Runs a program and returns its output. If it fails, throws an error with the end of its error output. */
export async function run (program: string, args: string[], env: NodeJS.Dict<string> = {}, cwd = ROOT) {
  try {
    const { stdout } = await promisify(execFile)(program, args, {
      cwd, env: { ...ENVIRONMENT, ...env }, signal: interrupted, maxBuffer: 2 ** 26,
    })
    return stdout
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string }
    throw new Error(`${program} failed: ${stderr?.slice(-1000) || message}`, { cause: error })
  }
}

/** An HTTP server in a child process. */
export interface Server {
  name: string
  url: string
  /** The processes of the service, without npm. */
  pids: number[]
  /** The path of its log. */
  log: string
  stop (): Promise<void>
}

interface ServerOptions {
  name: string
  command: string[]
  env: NodeJS.Dict<string>
  /** The folder of its log. */
  directory: string
  /** A path whose status is below 500 once the server is up. */
  path: string
}

/** Starts a program that listens on PORT. If it does not start, throws an error with the end of its log. */
export async function startServer ({ name, command, env, directory, path }: ServerOptions): Promise<Server> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const log = join(directory, `port-${port}.log`)
  const output = openSync(log, 'a')
  const child = spawn(command[0]!, command.slice(1), {
    cwd: ROOT,
    env: { ...ENVIRONMENT, NODE_ENV: 'production', PORT: String(port), ...env },
    stdio: ['ignore', output, output],
    // A process group of its own, which can be killed as a whole.
    detached: true,
  })
  closeSync(output)
  await once(child, 'spawn')
  const exited = once(child, 'exit')

  async function stop () {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    await Promise.race([exited, sleep(TIMEOUT, undefined, { ref: false })])
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGKILL')
    await exited
  }
  atEnd(stop)

  const end = Date.now() + TIMEOUT
  while (!await get(url + path).then(({ status }) => status < 500, () => false)) {
    if (Date.now() > end || child.exitCode !== null) {
      throw new Error(`${name} does not start:\n${(await readFile(log, 'utf8')).slice(-2000)}`)
    }
    await sleep(50, undefined, { signal: interrupted })
  }
  return { name, url, pids: await workingProcesses(child.pid!), log, stop }
}

/** Leaves out npm, whose only child the service is. */
async function workingProcesses (pid: number): Promise<number[]> {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).match(/\d+/g)?.map(Number) ?? []
  return children.length === 1 ? workingProcesses(children[0]!) : [pid, ...children]
}

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

import { variables } from '#lib/config/config.js'
import { runMain } from '#lib/startup.js'
import { RUN_DIR } from './run.ts'
import type { Teardown } from './scope.ts'

/** The exit and output of a process. */
export interface Outcome {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

interface Options {
  args?: string[]
  /** Its standard input. */
  input?: string
  /** An ES module that runs before the entry point. */
  prelude?: string
  /** Whether to measure its coverage, which slows it down by half. */
  covered?: boolean
  /** Whether it leads its own process group, as in a terminal, where Ctrl-C signals the group. */
  group?: boolean
  /** A file that its standard output goes to. */
  stdout?: string
  /** The folder of the build to run, if not this one. */
  root?: string
  /** Whether to run `npm start`, in its own process group. `.env` may then also configure it. */
  npm?: boolean
}

/** A prelude that redirects imports of this name to a file. */
export function redirectImport (name: string, file: string, format: 'json' | 'module') {
  const hooks = `export const resolve = (specifier, context, next) => specifier === '${name}'
    ? { url: '${pathToFileURL(file)}', format: '${format}', shortCircuit: true }
    : next(specifier, context)`
  return `import { register } from 'node:module'
    register('data:text/javascript,' + ${JSON.stringify(encodeURIComponent(hooks))})`
}

/** Starts an entry point as a child process. The environment of the tests and `.env` do not configure it. */
export function start (t: Teardown, script: string, environment: NodeJS.Dict<string>, options: Options = {}) {
  const { args = [], input = '', prelude, covered = false, npm = false, group = npm, stdout } = options
  const isOurs = (name: string) => name.replace(/_FILE$/, '') in variables.properties
  const inherited = Object.entries(process.env).filter(([name]) => !isOurs(name))
  const preludes = prelude ? ['--import', `data:text/javascript,${encodeURIComponent(prelude)}`] : []
  // tap adds NODE_OPTIONS for coverage to every child process, so only `env -u` removes them.
  const node = covered ? [] : ['-u', 'NODE_OPTIONS']
  const command = npm
    ? ['npm', '--no-update-notifier', 'start']
    : [process.execPath, ...preludes, resolve(script), ...args]
  const redirection = stdout ? ['sh', '-c', `exec "$@" > '${stdout}'`, 'sh'] : []
  const child = spawn('env', [...node, ...redirection, ...command], {
    cwd: npm ? '.' : RUN_DIR,
    detached: group,
    env: { ...Object.fromEntries(inherited), NODE_ENV: 'test', STOP_DELAY: '0', ...environment },
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', text => { output.stdout += text })
  child.stderr.setEncoding('utf8').on('data', text => { output.stderr += text })
  child.stdin.on('error', () => {}).end(input)
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, ...output }) as Outcome)
  t.teardown(async () => {
    if (npm) signalGroup(child, 'SIGKILL')
    child.kill('SIGKILL')
    await ended
  })
  return { child, output, ended }
}

/** Sends a signal to the process group of the child, as a terminal does. */
export function signalGroup ({ pid }: ChildProcess, signal: NodeJS.Signals) {
  try {
    process.kill(-pid!, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

let queue: Promise<unknown> = Promise.resolve()

/**
 * Runs a command within this process, which is faster than a child process, with the same outcome. Calls run one at a
 * time. Not for commands that `.env` could point to another database.
 */
export function call (
  command: (args: string[]) => Promise<void>, environment: NodeJS.Dict<string>, { args = [], input = '' }: Options
): Promise<Outcome> {
  const called = queue.then(async () => {
    const outcome: Outcome = { code: 0, signal: null, stdout: '', stderr: '' }
    const { env, exitCode } = process
    const { log, error } = console
    const stdin = Object.getOwnPropertyDescriptor(process, 'stdin')!
    process.env = { ...env, DATABASE_URL: 'none', ...environment }
    Object.defineProperty(process, 'stdin', { value: Readable.from([input]), configurable: true })
    console.log = (line: string) => { outcome.stdout += `${line}\n` }
    console.error = (line: string) => { outcome.stderr += `${line}\n` }
    try {
      await runMain(() => command(args))
      outcome.code = Number(process.exitCode ?? 0)
      return outcome
    } finally {
      Object.assign(process, { env, exitCode })
      Object.assign(console, { log, error })
      Object.defineProperty(process, 'stdin', stdin)
    }
  })
  queue = called
  return called
}

/** Runs an entry point until it exits. */
export function run (
  t: Teardown, script: string, environment: NodeJS.Dict<string>, options?: Options
): Promise<Outcome> {
  return start(t, script, environment, options).ended
}

/** A service in a child process. */
export interface Service {
  url: string
  child: ChildProcess
  ended: Promise<Outcome>
  output: { stdout: string }
  /** The messages that it has logged so far. */
  messages (): string[]
}

/** Starts the service on a free port, and waits until it listens. Throws with its output when it exits before. */
export async function startService (
  t: Teardown, environment: NodeJS.Dict<string>, options?: Options
): Promise<Service> {
  const script = resolve(options?.root ?? '.', 'dist/lib/server.js')
  const { child, output, ended } = start(t, script, { PORT: '0', ...environment }, options)
  const end = ended.then(outcome => { throw new Error(JSON.stringify(outcome)) })
  // npm prints a line of its own before the log.
  const lines = () => output.stdout.split('\n').slice(0, -1).filter(line => line.startsWith('{'))
  const messages = () => lines().map(line => JSON.parse(line).msg as string)
  const url = () => /"Server listening at (http:[^"]+)"/.exec(output.stdout)?.[1]
  while (!url()) await Promise.race([once(child.stdout!, 'data'), end])
  end.catch(() => {})
  return { url: url()!, child, ended, output, messages }
}

/** Sends a signal to a service, and waits until it has ended. */
export function stop ({ child, ended }: Service, signal: NodeJS.Signals = 'SIGTERM') {
  child.kill(signal)
  return ended
}

/** A folder for an embedded database. Its server is stopped and the folder removed when the test ends. */
export function dataDir (t: Teardown, parent = RUN_DIR) {
  const path = resolve(parent, `data-${randomUUID()}`)
  t.teardown(async () => {
    const pids = await postgresOf(path)
    for (const pid of pids.slice(0, 1)) process.kill(pid, 'SIGQUIT')
    await remaining(pids)
    await rm(path, { recursive: true, force: true })
  })
  return path
}

/** The pids of the embedded server in this folder: the postmaster first, then its children. */
export async function postgresOf (path: string) {
  const file = await readFile(join(path, 'postgres', 'postmaster.pid'), 'utf8').catch(() => '')
  const server = Number.parseInt(file)
  const processes = await listProcesses()
  if (!processes.some(({ pid }) => pid === server)) return []
  return [server, ...processes.filter(({ parent }) => parent === server).map(({ pid }) => pid)]
}

/** Returns the pids that still run after five seconds. */
export async function remaining (pids: number[]) {
  const left = async () => (await listProcesses()).map(({ pid }) => pid).filter(pid => pids.includes(pid))
  for (let polls = 0; polls < 100 && (await left()).length > 0; polls++) await sleep(50)
  return left()
}

/** All processes except zombies. */
async function listProcesses () {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,stat='])
  return stdout.trim().split('\n').map(line => line.trim().split(/\s+/))
    .filter(([, , state]) => !state!.startsWith('Z'))
    .map(([pid, parent]) => ({ pid: Number(pid), parent: Number(parent) }))
}

/** Finds a free port below the ports that the system gives to connections, because a connection could take it first. */
export async function freePort (): Promise<number> {
  const port = randomInt(20_000, 30_000)
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return freePort()
  }
  await promisify(server.close.bind(server))()
  return port
}

/** Whether a program of the system is installed. */
export function isInstalled (program: string) {
  return promisify(execFile)('sh', ['-c', 'command -v "$0"', program]).then(() => true, () => false)
}

/** Whether a server listens on the port. */
export async function isListening (port: number, host = '127.0.0.1') {
  const socket = connect(port, host)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

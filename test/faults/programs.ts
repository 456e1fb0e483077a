// Programs of the system, with the configuration that stands in examples/.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { chown, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { isInstalled, isListening } from '../process.ts'
import type { Teardown } from '../scope.ts'

const run = promisify(execFile)

export const ROOT = fileURLToPath(new URL('.', import.meta.resolve('#package.json')))

/** Where Debian and Ubuntu have PostgreSQL's programs of each version. */
const VERSIONS = '/usr/lib/postgresql'

/** How long a program may take until it is up, in milliseconds. */
const PATIENCE = 30_000

/** A user that runs programs. */
export interface Account {
  uid: number
  gid: number
}

/** The user of this process. */
const SELF: Account = { uid: process.getuid!(), gid: process.getgid!() }

/** The user for programs that refuse to run as root. */
export const NOBODY: Account = SELF.uid === 0 ? { uid: 65_534, gid: 65_534 } : SELF

/** The user for programs that start PostgreSQL: the user of Debian's package, or the current user. */
export async function postgresAccount (): Promise<Account> {
  if (SELF.uid !== 0) return SELF
  const id = async (option: string) => Number((await run('id', [option, 'postgres'])).stdout)
  return { uid: await id('-u'), gid: await id('-g') }
}

/** The folder of the programs of the newest PostgreSQL; `undefined` if PostgreSQL is not installed. */
export async function newestBin () {
  const versions = await readdir(VERSIONS).catch(() => [])
  const newest = versions.sort((a, b) => Number(a) - Number(b)).at(-1)
  return newest && `${VERSIONS}/${newest}/bin`
}

/** Says which of the programs must be installed; `undefined` when all are. */
export async function missingPrograms (...programs: string[]) {
  const missing: string[] = []
  for (const program of programs) {
    if (!await isInstalled(program)) missing.push(program)
  }
  return missing.length > 0 ? `${missing.join(' and ')} must be installed` : undefined
}

/** The text of an example in the repository, with values for this machine. */
export async function readExample (path: string, values: Record<string, string>) {
  let text = await readFile(join(ROOT, 'examples', path), 'utf8')
  for (const [example, value] of Object.entries(values)) {
    if (!text.includes(example)) throw new Error(`${path} does not say ${example}`)
    text = text.replaceAll(example, value)
  }
  return text
}

/** Writes an example with these values into the folder. Returns the path of the file. */
export async function fillExample (
  directory: string, path: string, values: Record<string, string>, account = NOBODY
) {
  return writeFor(account, directory, basename(path), await readExample(path, values))
}

/** Writes a file that belongs to this account. Returns its path. */
export async function writeFor ({ uid, gid }: Account, directory: string, name: string, text: string) {
  const path = join(directory, name)
  await writeFile(path, text)
  await chown(path, uid, gid)
  return path
}

interface Options {
  account?: Account
  environment?: NodeJS.Dict<string>
  /** The name of its log, without the ending. */
  name?: string
  /** Ends it with the scope; SIGKILL by default. */
  signal?: NodeJS.Signals
}

/** A program that runs. */
export interface Program {
  child: ChildProcess
  /** Resolves when the process has ended. */
  ended: Promise<{ code: number | null, signal: NodeJS.Signals | null }>
  /** Its log so far. */
  log (): Promise<string>
  /** The path of its log. */
  logFile: string
}

/** Starts a program until the scope ends, and waits until it is up. Throws with the end of its log if it is not. */
export async function startProcess (
  scope: Teardown, directory: string, [program, ...args]: string[], isUp: () => Promise<boolean>, options: Options = {}
): Promise<Program> {
  const { account = SELF, environment, name = basename(program!), signal: last = 'SIGKILL' } = options
  const logFile = join(directory, `${name}.log`)
  // Some programs open it by its name, which a pipe of Node.js does not have.
  const output = openSync(logFile, 'a')
  const child = spawn(program!, args, {
    ...account,
    cwd: directory,
    env: environment ? { PATH: process.env.PATH, ...environment } : process.env,
    stdio: ['ignore', output, output],
  })
  closeSync(output)
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  scope.teardown(async () => {
    child.kill(last)
    await ended
  })
  const log = () => readFile(logFile, 'utf8')
  const deadline = performance.now() + PATIENCE
  while (!await isUp()) {
    if (performance.now() > deadline || child.exitCode !== null) {
      throw new Error(`${program} does not start:\n${(await log()).slice(-2000)}`)
    }
    await sleep(50)
  }
  return { child, ended, log, logFile }
}

/** Starts a program of the system as `startProcess` does, not as root, and waits until it listens. */
export async function startProgram (
  scope: Teardown, directory: string, program: string, port: number, args: string[],
  { host, ...options }: Options & { host?: string } = {}
): Promise<ChildProcess> {
  const isUp = () => isListening(port, host)
  const { child } = await startProcess(scope, directory, [program, ...args], isUp, { account: NOBODY, ...options })
  return child
}

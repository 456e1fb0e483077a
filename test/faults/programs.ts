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
import type { Scope } from '../scope.ts'

const run = promisify(execFile)

export const ROOT = fileURLToPath(new URL('.', import.meta.resolve('#package.json')))

/** Where Debian and Ubuntu have PostgreSQL's programs of each version. */
const VERSIONS = '/usr/lib/postgresql'

/** How long a program may take until it listens, in milliseconds. */
const PATIENCE = 10_000

/** Who runs a program. */
export interface Account {
  uid: number
  gid: number
}

const SELF: Account = { uid: process.getuid!(), gid: process.getgid!() }

/** Who runs the programs that do not want to be root. */
export const NOBODY: Account = SELF.uid === 0 ? { uid: 65_534, gid: 65_534 } : SELF

/** Who runs what starts PostgreSQL: the user of Debian's package, or this one. */
export async function postgresAccount (): Promise<Account> {
  if (SELF.uid !== 0) return SELF
  const id = async (option: string) => Number((await run('id', [option, 'postgres'])).stdout)
  return { uid: await id('-u'), gid: await id('-g') }
}

/** The folder of the newest PostgreSQL's programs, `undefined` where none is installed. */
export async function newestBin () {
  const versions = await readdir(VERSIONS).catch(() => [])
  const newest = versions.sort((a, b) => Number(a) - Number(b)).at(-1)
  return newest && `${VERSIONS}/${newest}/bin`
}

/** Which of the programs are not there, and how to get them; `undefined` when all are. */
export async function missingPrograms (...programs: string[]) {
  const missing: string[] = []
  for (const program of programs) {
    if (!await isInstalled(program)) missing.push(program)
  }
  return missing.length > 0 ? `${missing.join(' and ')} must be installed` : undefined
}

/** The text of an example as it is in the repository, but for what differs from machine to machine. */
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
  /** A suffix of the program's name for its log. */
  suffix?: string
  /** Where it listens. */
  host?: string
}

/** Starts a program, gone when the scope ends, and waits until it listens. */
export async function startProgram (
  scope: Scope, directory: string, program: string, port: number, args: string[], options: Options = {}
): Promise<ChildProcess> {
  const { account = NOBODY, environment, suffix = '', host } = options
  const file = join(directory, `${basename(program)}${suffix}.log`)
  const output = openSync(file, 'a')
  const child = spawn(program, args, {
    ...account,
    cwd: directory,
    env: environment ? { PATH: process.env.PATH, ...environment } : process.env,
    stdio: ['ignore', output, output],
  })
  closeSync(output)
  const ended = once(child, 'close')
  scope.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const deadline = performance.now() + PATIENCE
  while (!await isListening(port, host)) {
    if (performance.now() > deadline || child.exitCode !== null) {
      throw new Error(`${program} does not start:\n${(await readFile(file, 'utf8')).slice(-2000)}`)
    }
    await sleep(50)
  }
  return child
}

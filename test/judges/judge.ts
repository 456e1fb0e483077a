import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

import type { Scope } from '../scope.ts'

/** What a judge works with: whatever it starts is gone when the scope ends, with everything in the directory. */
export interface Setting {
  scope: Scope
  directory: string
}

/** A program that others wrote, and that looks for faults. */
export interface Judge {
  /** What it needs on this machine, and how to get it. */
  program: string
  install: string
  /** Reads its version. */
  version (setting: Setting): Promise<string>
  /** Lets it judge. */
  run (setting: Setting): Promise<Verdict>
}

export interface Verdict {
  /** What it looked at. */
  subject: string
  /** What it found: each is a fault. */
  findings: string[]
}

/** Runs a program to its end. It takes all of its files from the directory, and puts them there. */
export async function run ({ scope, directory }: Setting, program: string, args: string[]) {
  const child = spawn(program, args, {
    cwd: directory,
    env: { ...process.env, XDG_DATA_HOME: directory },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  scope.teardown(() => child.kill('SIGKILL'))
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number | null, stdout, output: stdout + stderr }
}

/** A version as the output of a program has it. */
export function findVersion (output: string) {
  return /\d+(\.\d+)+/.exec(output)?.[0] ?? 'of an unknown version'
}

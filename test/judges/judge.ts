import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

import type { Scope } from '../scope.ts'

/** The environment of a judge: when the scope ends, its processes are stopped and its files removed. */
export interface Setting {
  scope: Scope
  directory: string
}

/** A program of others that looks for flaws. */
export interface Judge {
  /** The program that it needs, and how to install it. */
  program: string
  install: string
  /** Returns its version. */
  version (setting: Setting): Promise<string>
  /** Runs it. */
  run (setting: Setting): Promise<Verdict>
}

export interface Verdict {
  /** The checks that it made. */
  subject: string
  /** The flaws that it found. */
  findings: string[]
}

/** Runs a program in the directory until it exits. */
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

/** The version in the output of a program. */
export function findVersion (output: string) {
  return /\d+(\.\d+)+/.exec(output)?.[0] ?? 'of an unknown version'
}

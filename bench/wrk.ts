import { source } from './paths.ts'
import { run } from './programs.ts'

/** What wrk is to send: a mode of wrk/load.lua with its arguments, and headers and path where the mode leaves them. */
export interface Load {
  path: string
  headers?: Record<string, string>
  mode: 'plain' | 'tokens' | 'paths' | 'bodies' | 'pairs'
  args?: string[]
}

/** What came of it. */
export interface Outcome {
  requests: number
  seconds: number
  bytes: number
  /** Milliseconds. */
  p50: number
  p99: number
  max: number
  /** Answers with a status from 400 on. */
  refused: number
  /** Connections that could not be made, or broke. */
  broken: number
  timeouts: number
  /** How many answers had which status; in the mode `bodies` only. */
  statuses: Record<string, number>
}

/** The requests that may take longest are those of 256 connections for the biggest answers. */
const TIMEOUT = '120s'

/** Sends requests over so many connections, each the next when the one before is answered. */
export async function wrk (
  url: string, { path, headers = {}, mode, args = [] }: Load, connections: number, seconds: number
): Promise<Outcome> {
  const stdout = await run('wrk', [
    '--threads', '1', '--connections', String(connections), '--duration', `${seconds}s`, '--timeout', TIMEOUT,
    ...Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]),
    '--script', source('wrk/load.lua'), url + path, '--', mode, ...args,
  ])
  const { microseconds, ...outcome } = JSON.parse(stdout.trim().split('\n').at(-1)!)
  return {
    ...outcome,
    seconds: microseconds / 1e6,
    p50: outcome.p50 / 1e3,
    p99: outcome.p99 / 1e3,
    max: outcome.max / 1e3,
  }
}

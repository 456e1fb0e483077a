import { readFile } from 'node:fs/promises'
import os from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

import { root } from './paths.ts'
import { run } from './programs.ts'

/** Where and with what something was measured. */
export type Machine = Awaited<ReturnType<typeof describeMachine>>

export async function describeMachine (postgres: string) {
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '')
  const commit = await run('git', ['describe', '--always', '--dirty'], { cwd: root }).catch(() => '')
  const wrk = await run('sh', ['-c', 'wrk --version || true'])
  return {
    cpu: os.cpus()[0]?.model.trim() ?? 'unknown',
    cores: os.availableParallelism(),
    memory: `${Math.round(os.totalmem() / 2 ** 30)} GiB`,
    system: `${/^PRETTY_NAME="(.*)"$/m.exec(release)?.[1] ?? os.type()}, Linux ${os.release()}`,
    node: process.versions.node,
    postgres,
    wrk: /^wrk (\S+)/.exec(wrk)?.[1] ?? 'unknown',
    commit: commit.trim() || undefined,
  }
}

/** The share of the processors' time that nobody uses, from 0 to 1, looked at for a second. */
export async function idleShare () {
  const before = processorTimes()
  await sleep(1000)
  const after = processorTimes()
  return (after.idle - before.idle) / (after.all - before.all)
}

function processorTimes () {
  const times = os.cpus().map(cpu => cpu.times)
  const sum = (values: number[]) => values.reduce((sum, value) => sum + value, 0)
  return { idle: sum(times.map(({ idle }) => idle)), all: sum(times.flatMap(time => Object.values(time))) }
}

/** On one line, for people. */
export function machineLine ({ cpu, cores, memory, system, node, postgres }: Machine) {
  return `${cpu}, ${cores} cores, ${memory}; ${system}; Node.js ${node}, PostgreSQL ${postgres}`
}

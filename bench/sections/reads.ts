import { type Case, COMMITS, LISTS_WHILE_WRITING, READS } from '../cases.ts'
import type { Findings } from '../measure.ts'
import type { Server } from '../programs.ts'
import type { World } from '../world.ts'
import { prepareCommits, startWriter } from '../writer.ts'

/** 64 first: the figure that counts is taken right after a server warmed up, next to those it is compared with. */
export const CONNECTIONS = [64, 1, 256]

export interface Servers {
  service: Server
  floor: Server
  peers: Server[]
}

/** Turns beside the bare server: more than beside others, which differ by more than the machine does by itself. */
const FLOOR_TURNS = 9

/**
 * Measures an operation of the service, of the bare server where that has it, and of the peers over 64 connections.
 * There it has turns with whom it is judged by: the bare server, or else the peers.
 */
async function measureOperation (
  findings: Findings, world: World, { service, floor, peers }: Servers, operation: Case, connections: number
) {
  const floors = operation.floor ? [floor] : []
  const others = operation.peers && connections === 64 ? peers : []
  const rivals = connections !== 64 ? [] : operation.floor ? floors : others
  if (rivals.length > 0) {
    const runs = [service, ...rivals].map(server => () => findings.run(world, server, operation, connections, 1))
    await findings.compare(runs, operation.floor ? FLOOR_TURNS : undefined)
  } else {
    await findings.measure(world, service, operation, connections)
  }
  for (const server of [...floors, ...others]) {
    if (!rivals.includes(server)) await findings.measure(world, server, operation, connections)
  }
}

/** Every operation that reads, of all who have it; nobody writes. */
export async function measureReads (findings: Findings, world: World, servers: Servers) {
  for (const operation of READS.filter(({ name }) => findings.wants(name))) {
    for (const connections of CONNECTIONS) await measureOperation(findings, world, servers, operation, connections)
  }
}

/** The lists while somebody else commits 50 times a second, over a connection of their own. */
export async function measureListsWhileWriting (findings: Findings, world: World, servers: Servers) {
  const commit = await prepareCommits(world)
  for (const operation of LISTS_WHILE_WRITING.filter(({ name }) => findings.wants(name))) {
    for (const connections of CONNECTIONS) {
      const writer = startWriter(commit, COMMITS)
      await measureOperation(findings, world, servers, operation, connections)
      // The slowest that it was counts.
      findings.facts['commits/s'] = Math.min(Number(findings.facts['commits/s'] ?? COMMITS), await writer.stop())
    }
  }
}

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

/** Measures an operation of the service, and of the bare server where that has it: over 64 connections in turns. */
async function measureWithFloor (
  findings: Findings, world: World, { service, floor }: Servers, operation: Case, connections: number
) {
  const servers = operation.floor ? [service, floor] : [service]
  if (operation.floor && connections === 64) {
    await findings.compare(servers.map(server => () => findings.run(world, server, operation, connections, 1)))
  } else {
    for (const server of servers) await findings.measure(world, server, operation, connections)
  }
}

/** Every operation that reads, of all who have it; nobody writes. */
export async function measureReads (findings: Findings, world: World, servers: Servers) {
  for (const operation of READS.filter(({ name }) => findings.wants(name))) {
    for (const connections of CONNECTIONS) {
      await measureWithFloor(findings, world, servers, operation, connections)
      if (!operation.peers || connections !== 64) continue
      for (const peer of servers.peers) await findings.measure(world, peer, operation, connections)
    }
  }
}

/** The lists while somebody else commits 50 times a second, over a connection of their own. */
export async function measureListsWhileWriting (findings: Findings, world: World, servers: Servers) {
  const commit = await prepareCommits(world)
  for (const operation of LISTS_WHILE_WRITING.filter(({ name }) => findings.wants(name))) {
    for (const connections of CONNECTIONS) {
      const writer = startWriter(commit, COMMITS)
      await measureWithFloor(findings, world, servers, operation, connections)
      if (operation.peers && connections === 64) {
        for (const peer of servers.peers) await findings.measure(world, peer, operation, connections)
      }
      // The slowest that it was counts.
      findings.facts['commits/s'] = Math.min(Number(findings.facts['commits/s'] ?? COMMITS), await writer.stop())
    }
  }
}

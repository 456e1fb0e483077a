import { COMMITS, LISTS_WHILE_WRITING, READS } from '../cases.ts'
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

/** Every operation that reads, of all who have it; nobody writes. */
export async function measureReads (findings: Findings, world: World, { service, floor, peers }: Servers) {
  for (const operation of READS.filter(({ name }) => findings.wants(name))) {
    for (const connections of CONNECTIONS) {
      await findings.measure(world, service, operation, connections)
      if (operation.floor) await findings.measure(world, floor, operation, connections)
      if (!operation.peers || connections !== 64) continue
      for (const peer of peers) await findings.measure(world, peer, operation, connections)
    }
  }
}

/** The lists while somebody else commits 50 times a second, over a connection of their own. */
export async function measureListsWhileWriting (findings: Findings, world: World, { service, peers }: Servers) {
  const commit = await prepareCommits(world)
  for (const operation of LISTS_WHILE_WRITING.filter(({ name }) => findings.wants(name))) {
    for (const connections of CONNECTIONS) {
      for (const server of [service, ...operation.peers && connections === 64 ? peers : []]) {
        const writer = startWriter(commit, COMMITS)
        await findings.measure(world, server, operation, connections)
        // The slowest that it was counts.
        findings.facts['commits/s'] = Math.min(Number(findings.facts['commits/s'] ?? COMMITS), await writer.stop())
      }
    }
  }
}

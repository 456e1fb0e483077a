import { LOGIN } from '../cases.ts'
import { ARGON2, measureArgon2 } from '../floors.ts'
import type { Findings } from '../measure.ts'
import { startProber } from '../prober.ts'
import type { Server } from '../programs.ts'
import type { World } from '../world.ts'
import { CONNECTIONS } from './reads.ts'

export const BESIDE_LOGINS = 'GET /events beside logins'

/** Milliseconds between the requests of somebody who looks at the events meanwhile. */
const INTERVAL = 20

/** Sign-ins, with a look at how the lists do beside them, and what the machine hashes at best. */
export async function measureLogins (findings: Findings, world: World, service: Server) {
  if (!findings.wants(LOGIN.name)) return
  for (const connections of CONNECTIONS) {
    const prober = startProber(`${service.url}/events`, INTERVAL)
    const { statuses } = await findings.measure(world, service, LOGIN, connections)
    const { p50, p99 } = await prober.stop()
    const beside = { target: service.name, world: world.name, connections }
    findings.add({ case: BESIDE_LOGINS, ...beside, rate: 1000 / INTERVAL, p50, p99 })
    const refused = statuses[503] ?? 0
    if (refused > 0) findings.facts[`logins told to come back, ${connections} connections`] = refused
    if (connections !== 64) continue
    const rate = await measureArgon2(findings.options.seconds)
    findings.add({ case: LOGIN.name, target: ARGON2, world: world.name, connections, rate })
  }
}

import { LOGIN } from '../cases.ts'
import { ARGON2, measureArgon2 } from '../floors.ts'
import type { Findings } from '../measure.ts'
import { startProber } from '../prober.ts'
import type { Server } from '../programs.ts'
import { percentile } from '../statistics.ts'
import type { World } from '../world.ts'
import { CONNECTIONS } from './reads.ts'

export const BESIDE_LOGINS = 'GET /events beside logins'

/** Milliseconds between the requests of somebody who looks at the events meanwhile. */
const INTERVAL = 50

/** Sign-ins, with a look at how the lists do beside them, and what the machine hashes at best. */
export async function measureLogins (findings: Findings, world: World, service: Server) {
  if (!findings.wants(LOGIN.name)) return
  for (const connections of CONNECTIONS) {
    const latencies: number[] = []
    let refused = 0
    const common = { world: world.name, connections }

    async function logins () {
      const prober = startProber(`${service.url}/events`, INTERVAL)
      const { outcome, ...measure } = await findings.run(world, service, LOGIN, connections)
      latencies.push(...await prober.stop())
      refused += outcome.statuses[503] ?? 0
      return measure
    }

    async function alone (atOnce: keyof typeof ARGON2) {
      const rate = await measureArgon2(atOnce, findings.options.seconds)
      return { ...common, case: LOGIN.name, target: ARGON2[atOnce], rate }
    }

    if (connections === 64) await findings.compare([logins, () => alone(2), () => alone(4)])
    else findings.add(await logins())
    const [p50, p99] = [50, 99].map(percent => percentile(latencies, percent))
    findings.add({ ...common, case: BESIDE_LOGINS, target: service.name, rate: 1000 / INTERVAL, p50, p99 })
    if (refused > 0) findings.facts[`logins told to come back, ${connections} connections`] = refused
  }
}

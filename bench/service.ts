import { root } from './paths.ts'
import { startServer } from './programs.ts'
import { SECRET, type World } from './world.ts'

/** How the tables call it. */
export const SERVICE = 'service'

/** Starts the service as its operators do: in production, on a database of its own. */
export function startService ({ databaseUrl, directory }: Pick<World, 'databaseUrl' | 'directory'>) {
  return startServer({
    name: SERVICE,
    program: `${root}bin/start`,
    directory,
    env: { DATABASE_URL: databaseUrl, JWT_SECRET: SECRET, LOG_LEVEL: 'warn' },
    ready: '/readyz',
  })
}

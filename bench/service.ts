import { script } from './paths.ts'
import { startServer } from './programs.ts'
import { SECRET, type World } from './world.ts'

/** How the tables call it. */
export const SERVICE = 'service'

/** Starts the service as its operators do: what was compiled, in production, on a database of its own. */
export function startService ({ databaseUrl, directory }: Pick<World, 'databaseUrl' | 'directory'>) {
  return startServer({
    name: SERVICE,
    script: script('lib/start.cjs'),
    directory,
    // As `npm start` has it.
    args: ['--heap-growing-percent=50', '--max-semi-space-size=8'],
    env: { MALLOC_ARENA_MAX: '1', DATABASE_URL: databaseUrl, JWT_SECRET: SECRET, LOG_LEVEL: 'warn' },
    ready: '/readyz',
  })
}

import { script } from './paths.ts'
import { run } from './programs.ts'

/** How many rows of each kind `npm run seed` adds. */
export type Size = Record<
  'users' | 'clubs' | 'events' | 'registrations' | 'blogs' | 'mentors' | 'likes' | 'testimonials', number
>

/** The data of most measurements: a university's. */
export const MAIN: Size = {
  users: 5_000,
  clubs: 100,
  events: 10_000,
  registrations: 200_000,
  blogs: 100,
  mentors: 50,
  likes: 10_000,
  testimonials: 200,
}

/** What grows tenfold and a hundredfold. */
export const ONCE: Size = {
  users: 1_000,
  clubs: 10,
  events: 100,
  registrations: 10_000,
  blogs: 20,
  mentors: 10,
  likes: 1_000,
  testimonials: 50,
}

/** What makes answers of 100,000 rows. */
export const BIG: Size = {
  users: 100_000,
  clubs: 100_000,
  events: 10_000,
  registrations: 100_000,
  blogs: 100_000,
  mentors: 10,
  likes: 10,
  testimonials: 10,
}

/** So many times the data. */
export function times (factor: number, size: Size) {
  return Object.fromEntries(Object.entries(size).map(([kind, count]) => [kind, Math.ceil(count * factor)])) as Size
}

/** Fills an empty database. The directory is one without a `.env`, which would have a say. */
export async function fill (databaseUrl: string, size: Size, directory: string) {
  const flags = Object.entries(size).flatMap(([kind, count]) => [`--${kind}`, String(count)])
  await run(process.execPath, [script('lib/cli.js'), 'seed', ...flags], {
    cwd: directory, env: { DATABASE_URL: databaseUrl, MIGRATE_ON_START: 'true' },
  })
}

import { readFile, writeFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'

import { BLOG, LISTS, ME } from './cases.ts'
import { source } from './paths.ts'
import { run, type Server, startServer } from './programs.ts'
import { addEvents, SECRET, type World } from './world.ts'

/** The peers: folders of `peers/`. */
export const EXPRESS = 'express-prisma'
export const FASTIFY = 'fastify-pg'
export const PEERS = [EXPRESS, FASTIFY]

/** Installs a peer's packages into its own folder, unless they are there. */
export async function installPeer (name: string) {
  const cwd = source(`peers/${name}`)
  const lock = await readFile(`${cwd}/package-lock.json`, 'utf8')
  const mark = `${cwd}/node_modules/.installed`
  if (await readFile(mark, 'utf8').catch(() => '') === lock) return
  // None of them needs an install script to run, nor what a part of Prisma that is not used asks of Node.js. The
  // environment may say which registry to use.
  await run('npm', [
    'ci', '--ignore-scripts', '--no-engine-strict', '--no-audit', '--no-fund', '--loglevel', 'error',
  ], { cwd, env: process.env })
  if (name === EXPRESS) {
    // What generates the client wants to see that engine, which it does not use, and would download it.
    await run('npx', ['--no-install', 'prisma', 'generate', '--schema', 'schema.prisma'], {
      cwd, env: { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' },
    })
  }
  await writeFile(mark, lock)
}

export async function startPeer (name: string, world: World) {
  return startServer({
    name,
    script: source(`peers/${name}/server.js`),
    directory: world.directory,
    env: { DATABASE_URL: world.databaseUrl, JWT_SECRET: SECRET },
    ready: '/events',
  })
}

/** Says where a peer's answers differ from the service's. */
export async function compareAnswers (world: World, service: Server, peer: Server) {
  const differences: string[] = []
  for (const operation of [...LISTS, BLOG, ME]) {
    const { load: { path } } = await operation.prepare(world, service)
    const [ours, theirs] = await Promise.all([service, peer].map(async ({ url }) => {
      const response = await fetch(url + path, { headers: { authorization: `Bearer ${world.users[0]}` } })
      return await response.json() as unknown
    }))
    const where = difference(ours, theirs)
    if (where) differences.push(`${operation.name} of ${peer.name} differs from the service's at ${where}`)
  }
  return differences
}

/** Says where a peer's answer to a registration differs from the service's. */
export async function compareRegistrations (world: World, service: Server, peer: Server) {
  const { ids } = await addEvents(world, 2)
  const [ours, theirs] = await Promise.all([service, peer].map(async ({ url }, n) => {
    const response = await fetch(`${url}/events/${ids[n]}/register`, {
      method: 'POST', headers: { authorization: `Bearer ${world.users[0]}` },
    })
    const { registration } = await response.json() as { registration: Record<string, unknown> }
    // What cannot be the same.
    const { id, eventId, registeredAt, ...rest } = registration
    return { status: response.status, ...rest, own: [id, eventId, registeredAt].map(value => typeof value) }
  }))
  const where = difference(ours, theirs)
  return where && `Registrations of ${peer.name} differ from the service's at ${where}`
}

/** The path of the first value that is not the same in both; `undefined` when all are. */
function difference (a: unknown, b: unknown, path = 'its root'): string | undefined {
  if (isDeepStrictEqual(a, b)) return
  if (!(a instanceof Object && b instanceof Object)) return path
  const prefix = path === 'its root' ? '' : `${path}.`
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])] as never[]
  return keys.map(key => difference(a[key], b[key], prefix + key)).find(Boolean)
}

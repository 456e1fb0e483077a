import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'

import { EXPRESS } from './cases.ts'
import { type Fixture, JWT_SECRET } from './fixture.ts'
import { run, type Server, source, startServer } from './programs.ts'

const FOLDER = source('express-prisma')

/** Installs and builds the alternative in its folder, if necessary. */
async function install () {
  const inputs = ['package-lock.json', 'schema.prisma'].map(name => readFile(`${FOLDER}/${name}`, 'utf8'))
  const wanted = (await Promise.all(inputs)).join('')
  const mark = `${FOLDER}/node_modules/.installed`
  if (await readFile(mark, 'utf8').catch(() => '') === wanted) return
  // No package needs its install script. Prisma declares engines for parts that are not used. The environment may
  // configure a registry.
  const flags = ['--ignore-scripts', '--no-engine-strict', '--no-audit', '--no-fund']
  await run('npm', ['ci', ...flags], process.env, FOLDER)
  await run('npm', ['run', 'build'], {}, FOLDER)
  await writeFile(mark, wanted)
}

/** Returns a value with only the fields that `other` also has, at every depth. */
function withFieldsOf (other: unknown, value: unknown): unknown {
  if (Array.isArray(value) && Array.isArray(other)) return value.map((each, n) => withFieldsOf(other[n], each))
  if (!isObject(value) || !isObject(other)) return value
  const shared = Object.entries(value).filter(([name]) => name in other)
  return Object.fromEntries(shared.map(([name, each]) => [name, withFieldsOf(other[name], each)]))
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

/**
 * Starts the alternative. Throws unless its responses equal the responses of the service in the fields that they have.
 * A new field of the service need not be in its schema.
 */
export async function startAlternative ({ databaseUrl, directory, students }: Fixture, service: Server) {
  await install()
  const command = [process.execPath, `${FOLDER}/server.js`]
  const env = { DATABASE_URL: databaseUrl, JWT_SECRET }
  const alternative = await startServer({ name: EXPRESS, command, env, directory, path: '/events' })
  const headers = { authorization: `Bearer ${students[0]}` }
  for (const path of ['/events', '/auth/me']) {
    const [ours, theirs] = await Promise.all([service, alternative].map(async ({ url }) => {
      return (await fetch(url + path, { headers })).json()
    }))
    assert.deepEqual({ [path]: theirs }, { [path]: withFieldsOf(theirs, ours) })
  }
  return alternative
}

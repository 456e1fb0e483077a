import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'

import { EXPRESS, FASTIFY, LISTS } from './cases.ts'
import { type Fixture, JWT_SECRET } from './fixture.ts'
import { run, type Server, source, startServer } from './programs.ts'

const FOLDERS = { [EXPRESS]: 'alternatives/express-prisma', [FASTIFY]: 'alternatives/fastify-pg' }

/** Installs and builds both alternatives in their folders, unless that was done before. */
export async function installAlternatives () {
  await Promise.all(Object.values(FOLDERS).map(async folder => {
    const cwd = source(folder)
    const inputs = ['package.json', 'package-lock.json', 'schema.prisma']
      .map(name => readFile(`${cwd}/${name}`, 'utf8').catch(() => ''))
    const wanted = (await Promise.all(inputs)).join('')
    const mark = `${cwd}/node_modules/.installed`
    if (await readFile(mark, 'utf8').catch(() => '') === wanted) return
    // No package needs its install script. Prisma declares engines for parts that are not used. The environment may
    // configure a registry.
    const flags = ['--ignore-scripts', '--no-engine-strict', '--no-audit', '--no-fund']
    await run('npm', ['ci', ...flags], process.env, cwd)
    await run('npm', ['run', 'build', '--if-present'], {}, cwd)
    await writeFile(mark, wanted)
  }))
}

/** Starts both alternatives. Throws unless their responses equal those of the service. */
export async function startAlternatives ({ databaseUrl, directory, students, blog }: Fixture, service: Server) {
  return Promise.all(Object.entries(FOLDERS).map(async ([name, folder]) => {
    const command = [process.execPath, source(`${folder}/server.js`)]
    const env = { DATABASE_URL: databaseUrl, JWT_SECRET }
    const alternative = await startServer({ name, command, env, directory, path: '/events' })
    const headers = { authorization: `Bearer ${students[0]}` }
    for (const operation of [...LISTS.map(({ name }) => name), `GET /blogs/${blog}`, 'GET /auth/me']) {
      const [ours, theirs] = await Promise.all([service, alternative].map(async ({ url }) => {
        return (await fetch(operation.replace('GET ', url), { headers })).json()
      }))
      assert.deepEqual({ [operation]: theirs }, { [operation]: ours })
    }
    return alternative
  }))
}

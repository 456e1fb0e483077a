import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import postgres from 'postgres'

import { createDatabase } from './helper.ts'
import t from './suite.ts'

/** The files and folders of lib from the top. Each may import from those after it. */
const ORDER = [
  'cli.ts', 'server.ts', 'cli', 'app.ts', 'startup.ts', 'shutdown.ts',
  'accounts', 'email', 'agenda', 'clubs', 'auth', 'pictures', 'database', 'http', 'config', 'values',
]

/** The folders of lib that import only from themselves, and files with what clients share: places and turns. */
const ALONE = ['cache', 'live']
const SHARED = ['lib/http/fair-queue.ts', 'lib/http/in-batches.ts']

/** The files in these folders, with their texts. */
async function read (...folders: string[]) {
  const files = await Promise.all(folders.map(async folder =>
    (await readdir(folder, { recursive: true })).filter(file => file.endsWith('.ts')).map(file => join(folder, file))))
  return Promise.all(files.flat().map(async file => ({ file, text: await readFile(file, 'utf8') })))
}

const sources = await read('lib', 'plugins', 'routes')

/** The relative imports of a file, as paths. */
const importsOf = ({ file, text }: typeof sources[number]) =>
  [...text.matchAll(/(?:from |import\()'(\.[^']+)'/g)].map(([, path = '']) => join(dirname(file), path))

t.test('Imports form no circle', async t => {
  const all = [...sources, ...await read('bench', 'test')]
  const left = new Map(all.map(source => [source.file, importsOf(source)]))
  const free = () => [...left].filter(([, imports]) => !imports.some(file => left.has(file)))
  for (let files = free(); files.length > 0; files = free()) for (const [file] of files) left.delete(file)
  t.strictSame([...left.keys()], [])
})

t.test('Folders of lib import only from folders below them, and neither lib nor routes import plugins', async t => {
  const placeOf = (path: string) => /^lib\/([^/]+)/.exec(path)?.[1]
  for (const source of sources) {
    const { file } = source
    const from = placeOf(file)
    if (from) t.ok([...ORDER, ...ALONE].includes(from), `${file} has a place`)
    const below = ORDER.slice(ORDER.indexOf(from ?? '') + 1)
    for (const target of importsOf(source)) {
      const to = placeOf(target)
      if (file.startsWith('lib/')) t.match(target, /^lib\//, `${file} imports ${target}`)
      // What plugins supply to routes are decorators and hooks.
      if (file.startsWith('routes/')) t.match(target, /^(lib|routes)\//, `${file} imports ${target}`)
      if (from && ALONE.includes(from)) t.ok(to === from || SHARED.includes(target), `${file} imports ${target}`)
      else if (from && to && from !== to) t.ok(below.includes(to), `${file} imports ${target}`)
    }
  }
})

// After `npm ci` in its folder, a running service would not find a module, and Node.js keeps that failure.
t.test('Modules are loaded when a service starts, not by a request', t => {
  const loading = sources.filter(({ text }) => text.includes('import(')).map(({ file }) => file).sort()
  t.strictSame(loading, [
    // What `routes/auth/index.ts` has loaded
    'lib/auth/identity-provider.ts',
    'lib/cli/openapi.ts', 'lib/database/embedded-postgres.ts', 'lib/database/migrations.ts', 'lib/email/transport.ts',
    'lib/pictures/load-converter.ts', 'lib/server.ts', 'plugins/metrics.ts', 'plugins/tracing.ts',
    'routes/auth/index.ts',
  ])
  t.end()
})

t.test('No CTE has the name of a table', async t => {
  const sql = postgres(await createDatabase(), { max: 1 })
  t.teardown(() => sql.end())
  const tables = (await sql`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`).map(row => row.tablename)
  const cte = /(?:WITH|RECURSIVE|\),)\s+(\w+)(?: \([\w, ]+\))? AS (?:NOT )?(?:MATERIALIZED )?\(/g
  for (const { file, text } of sources) {
    const named = [...text.matchAll(cte)].map(([, name]) => name).filter(name => tables.includes(name))
    t.strictSame(named, [], file)
  }
})

import { mkdir, mkdtemp, readdir, readFile, realpath, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'
import t, { type Test } from 'tap'

import { createDatabase } from '../../helper.ts'
import migrateCommand from '#lib/cli/migrate.js'
import { call, dataDir, postgresOf, redirectImport, run, startService } from '../../process.ts'
import { RUN_DIR } from '../../run.ts'

const NAMES = (await readdir('migrations')).sort().map(file => file.replace('.sql', ''))
const LAST = NAMES.at(-1)!

const lines = (state: string, names: string[]) => names.map(name => `${state}  ${name}\n`).join('')

/** Runs `migrate` with these arguments. */
const migrate = (t: Test, variables: NodeJS.Dict<string>, ...args: string[]) => variables.DATA_DIR
  ? run(t, 'dist/lib/cli.js', variables, { args: ['migrate', ...args] })
  : call(migrateCommand, variables, { args })

/** A project with these migrations. Other tests do not see them: with `prelude`, the commands find them. */
async function makeProject (migrations: Record<string, string> = {}) {
  const project = await mkdtemp(join(await realpath(RUN_DIR), 'project-'))
  const directory = join(project, 'migrations')
  await mkdir(directory)
  await writeFile(join(project, 'package.json'), '{}')
  for (const [name, text] of Object.entries(migrations)) await writeFile(join(directory, `${name}.sql`), text)
  return { directory, prelude: redirectImport('#package.json', join(project, 'package.json'), 'json') }
}

const succeeded = (stdout: string | RegExp) => ({ code: 0, signal: null, stdout, stderr: '' })
const failed = (line: string) => ({ code: 1, signal: null, stdout: '', stderr: `${line}\n` })

t.test('up, down and status on DATABASE_URL', async t => {
  const DATABASE_URL = await createDatabase({ migrated: false })
  const steps: [args: string[], stdout: string][] = [
    [['status'], lines('pending', NAMES)],
    [['down'], 'Nothing to do\n'],
    [[], lines('applied', NAMES)],
    [['up'], 'Nothing to do\n'],
    [['down'], lines('reverted', [LAST])],
    [['status'], lines('applied', NAMES.slice(0, -1)) + lines('pending', [LAST])],
    [['down', '2'], lines('reverted', NAMES.slice(-3, -1).reverse())],
    [['up'], lines('applied', NAMES.slice(-3))],
    [['down', '1000'], lines('reverted', [...NAMES].reverse())],
  ]
  for (const [args, stdout] of steps) {
    t.strictSame(await migrate(t, { DATABASE_URL }, ...args), succeeded(stdout), `migrate ${args.join(' ')}`)
  }
})

t.test('--json prints the results of up, down and status as JSON', async t => {
  const DATABASE_URL = await createDatabase({ migrated: false })
  const statuses = (applied: number) => NAMES.map((name, index) => ({ name, applied: index < applied }))
  const steps: [command: string, outcome: unknown][] = [
    ['status', statuses(0)],
    ['up', { applied: NAMES }],
    ['up', { applied: [] }],
    ['down', { reverted: [LAST] }],
    ['status', statuses(NAMES.length - 1)],
  ]
  for (const [command, outcome] of steps) {
    t.strictSame(await migrate(t, { DATABASE_URL }, command, '--json'), succeeded(`${JSON.stringify(outcome)}\n`))
  }
})

t.test('migrates the embedded database while the service runs', async t => {
  const DATA_DIR = dataDir(t)
  const service = await startService(t, { DATA_DIR })
  t.strictSame(await migrate(t, { DATA_DIR }, 'status'), succeeded(lines('applied', NAMES)))
  t.strictSame(await migrate(t, { DATA_DIR }, 'down'), succeeded(lines('reverted', [LAST])))
  t.equal((await fetch(`${service.url}/readyz`)).status, 503)
  t.strictSame(await migrate(t, { DATA_DIR }, 'up'), succeeded(lines('applied', [LAST])))
  // The check counts for a second, and the migration may take less.
  while ((await fetch(`${service.url}/readyz`)).status !== 200) await sleep(50)
  service.child.kill('SIGTERM')
  t.equal((await service.ended).code, 0)
  t.strictSame(await postgresOf(DATA_DIR), [])
})

t.test('create writes an empty migration into migrations/', async t => {
  const { directory, prelude } = await makeProject()
  const args = ['migrate', 'create', 'likes']
  const outcome = await run(t, 'dist/lib/cli.js', {}, { args, prelude, covered: true })
  const [file, ...others] = await readdir(directory)
  t.match(file, /^\d{17}_likes\.sql$/)
  t.strictSame(others, [])
  t.strictSame(outcome, succeeded(`${relative(await realpath(RUN_DIR), join(directory, file!))}\n`))
  t.match(await readFile(join(directory, file!), 'utf8'), /^-- Up Migration\s+-- Down Migration\s*$/)
})

t.test('a migration with an earlier stamp is pending, and applied by the command that the refusal names', async t => {
  const DATABASE_URL = await createDatabase({ migrated: false })
  const migration = (table: string) =>
    `-- Up Migration\nCREATE TABLE ${table} ();\n-- Down Migration\nDROP TABLE ${table};`
  const names = ['20260101000000000_one', '20260102000000000_two', '20260103000000000_three']
  const { directory, prelude } = await makeProject({ [names[0]!]: migration('one'), [names[2]!]: migration('three') })
  const migrate = (...args: string[]) =>
    run(t, 'dist/lib/cli.js', { DATABASE_URL }, { args: ['migrate', ...args], prelude })
  t.strictSame(await migrate(), succeeded(lines('applied', [names[0]!, names[2]!])))
  await writeFile(join(directory, `${names[1]}.sql`), migration('two'))

  const { stderr } = await run(t, 'dist/lib/server.js', { DATABASE_URL, PORT: '0' }, { prelude })
  t.equal(stderr, 'The database lacks 1 migration. Run "npm run migrate", or start with MIGRATE_ON_START=true.\n')
  t.strictSame(await migrate(), succeeded(lines('applied', [names[1]!])))
  t.strictSame(await migrate('down', '2'), succeeded(lines('reverted', [names[1]!, names[2]!])), 'the last one first')
})

t.test('rejects unknown arguments', async t => {
  const DATABASE_URL = await createDatabase()
  const count = 'COUNT must be a whole number from 1 (see --help)'
  const refusals: [args: string[], line: string][] = [
    [['down', '1', '2'], 'Unexpected argument "2" (see --help)'],
    [['create'], 'create needs a NAME of letters, digits, _ and - (see --help)'],
    [['create', '../elsewhere'], 'create needs a NAME of letters, digits, _ and - (see --help)'],
    [['down', '0'], count],
    [['down', '1.5'], count],
    [['down', '01'], count],
    [['down', 'all'], count],
  ]
  for (const [args, line] of refusals) {
    t.strictSame(await migrate(t, { DATABASE_URL }, ...args), failed(line), `migrate ${args.join(' ')}`)
  }
  t.strictSame(await migrate(t, { DATABASE_URL }, 'status'), succeeded(lines('applied', NAMES)), 'nothing changed')
})

t.test('reports missing rights in one line', async t => {
  const DATABASE_URL = await createDatabase({ migrated: false })
  const sql = postgres(DATABASE_URL, { max: 1, onnotice: () => {} })
  const role = `migrate_${process.pid}`
  await sql.unsafe(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'; REVOKE CREATE ON SCHEMA public FROM PUBLIC`)
  t.teardown(async () => {
    await sql.unsafe(`DROP ROLE ${role}`)
    await sql.end()
  })
  const url = Object.assign(new URL(DATABASE_URL), { username: role, password: 'secret' })
  const variables = { DATABASE_URL: url.href, MIGRATE_ON_START: 'true', PORT: '0' }
  const refused = failed('The list of migrations failed: Unable to ensure migrations table: ' +
    'error: permission denied for schema public')
  t.strictSame(await migrate(t, variables), refused)
  t.equal((await run(t, 'dist/lib/server.js', variables)).stderr, refused.stderr)

  await sql`CREATE TABLE pgmigrations (name text)`
  const unreadable = failed('PostgreSQL: permission denied for table pgmigrations')
  t.strictSame(await migrate(t, variables, 'status'), unreadable)
  t.equal((await run(t, 'dist/lib/server.js', variables)).stderr, unreadable.stderr)
})

import { execFile } from 'node:child_process'
import { cp, mkdtemp, realpath, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

import t from 'tap'

import { openDatabase } from '#lib/database/pools.js'
import { StartupError } from '#lib/config/startup-error.js'
import { createDatabase, testConfig } from '../../helper.ts'
import { redirectImport, run } from '../../process.ts'

const log = { info () {}, warn () {} }

t.test('The service does not start without the patches of its driver', async t => {
  // A copy of the published version, with the patches reverted.
  const dir = await realpath(await mkdtemp('.data/driver-'))
  t.teardown(() => rm(dir, { recursive: true }))
  for (const part of ['package.json', 'patches', 'node_modules/postgres']) {
    await cp(part, join(dir, part), { recursive: true })
  }
  const patchPackage = resolve('node_modules/patch-package/index.js')
  await promisify(execFile)(process.execPath, [patchPackage, '--reverse'], { cwd: dir })
  const published = join(dir, 'node_modules/postgres/src/index.js')
  const { code, stderr } = await run(t, 'dist/lib/server.js', { DATABASE_URL: await createDatabase() }, {
    prelude: redirectImport('postgres', published, 'module'), covered: true,
  })
  t.equal(code, 1)
  t.match(stderr, /^Cannot start: postgres\.js lacks its patches, .* Run "npx patch-package"/)
})

t.test('Without DATABASE_URL an embedded PostgreSQL in DATA_DIR is used, and stopped by its last user', async t => {
  const dir = await mkdtemp('.data/database-')
  t.teardown(() => rm(dir, { recursive: true }))
  const config = testConfig({ DATA_DIR: dir })

  const first = await openDatabase(config, log)
  const [before] = await first.sql`SELECT current_database() AS name`
  t.strictSame(before, { name: 'postgres' })
  const second = await openDatabase(config, log)
  t.equal(second.url, first.url)
  await first.close()
  const [after] = await second.sql`SELECT current_database() AS name`
  t.strictSame(after, before)
  await second.close()
  const refusal = await openDatabase(testConfig({ DATABASE_URL: second.url }), log).catch(error => error)
  t.ok(refusal instanceof StartupError)
  t.match(refusal.message, /^Cannot reach the database at 127\.0\.0\.1:\d+\/postgres: /)
})

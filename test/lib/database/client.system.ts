import { execFile } from 'node:child_process'
import { cp, mkdtemp, realpath, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

import t from 'tap'

import { openDatabase } from '#lib/database/client.js'
import { StartupError } from '#lib/errors.js'
import { createDatabase, testConfig } from '../../helper.ts'
import { redirectImport, startService } from '../../process.ts'

const log = { info () {}, warn () {} }

t.test('An unpatched driver is a warning at the start', async t => {
  const DATABASE_URL = await createDatabase(t)
  const warning = /^The patches of postgres\.js are missing .*"npx patch-package"$/
  const warnings = async (prelude?: string) => {
    const service = await startService(t, { DATABASE_URL }, { prelude, covered: true })
    service.child.kill()
    await service.ended
    return service.messages().filter(message => warning.test(message))
  }
  t.strictSame(await warnings(), [])

  // A copy of the published version, with the patches reverted.
  const dir = await realpath(await mkdtemp('.data/driver-'))
  t.teardown(() => rm(dir, { recursive: true }))
  for (const part of ['package.json', 'patches', 'node_modules/postgres']) {
    await cp(part, join(dir, part), { recursive: true })
  }
  const patchPackage = resolve('node_modules/patch-package/index.js')
  await promisify(execFile)(process.execPath, [patchPackage, '--reverse'], { cwd: dir })
  const published = join(dir, 'node_modules/postgres/src/index.js')
  t.equal((await warnings(redirectImport('postgres', published, 'module'))).length, 1)
})

t.test('Without DATABASE_URL an embedded PostgreSQL in DATA_DIR is used, and stopped by its last user', async t => {
  const dir = await mkdtemp('.data/database-')
  t.teardown(() => rm(dir, { recursive: true }))
  const config = testConfig({ DATA_DIR: dir })

  const first = await openDatabase(config, log)
  const [before] = await first.sql`SELECT current_database() AS name`
  t.strictSame(before, { name: 'community' })
  const second = await openDatabase(config, log)
  t.equal(second.url, first.url)
  await first.close()
  const [after] = await second.sql`SELECT current_database() AS name`
  t.strictSame(after, before)
  await second.close()
  const refusal = await openDatabase(testConfig({ DATABASE_URL: second.url }), log).catch(error => error)
  t.ok(refusal instanceof StartupError)
  t.match(refusal.message, /^Cannot reach the database at 127\.0\.0\.1:\d+\/community: /)
})

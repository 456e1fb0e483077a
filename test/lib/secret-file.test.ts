import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'

import t from 'tap'

import { keepSecret } from '#lib/secret-file.js'
import { StartupError } from '#lib/startup-error.js'

/** The line with which the start stops. */
async function refusal (path: string) {
  return keepSecret(path).catch(error => error instanceof StartupError ? error.message : error)
}

t.test('The first call makes a secret that only its owner can read', async t => {
  const dir = join(t.testdir(), 'made', 'too')
  const path = join(dir, 'secret')
  const secret = await keepSecret(path)
  t.match(secret, /^[A-Za-z0-9_-]{64}$/)
  t.equal((await fs.stat(path)).mode & 0o777, 0o600)
  t.strictSame(await fs.readdir(dir), ['secret'])
  t.equal(await keepSecret(path), secret, 'the next one reads it')
  t.not(await keepSecret(join(dir, 'other')), secret, 'another file has another secret')
})

t.test('A secret that is there is kept as it is', async t => {
  const path = join(t.testdir({ secret: 'of old' }), 'secret')
  t.equal(await keepSecret(path), 'of old')
})

t.test('Many who start at once agree on one secret', async t => {
  const dir = t.testdir()
  const path = join(dir, 'secret')
  const secrets = new Set(await Promise.all(Array.from({ length: 20 }, () => keepSecret(path))))
  t.strictSame([...secrets], [await fs.readFile(path, 'utf8')])
  t.strictSame(await fs.readdir(dir), ['secret'])
})

t.test('A file that can be neither read nor made stops the start', async t => {
  const dir = t.testdir({ file: '' })
  t.equal(await refusal(dir), `Cannot keep a secret in ${dir}: EISDIR: illegal operation on a directory, read`)
  const path = join(dir, 'file', 'secret')
  t.equal(await refusal(path),
    `Cannot keep a secret in ${path}: EEXIST: file already exists, mkdir '${join(dir, 'file')}'`)
})

t.test('A file that cannot be put in place stops the start and leaves no draft', async t => {
  const link = fs.link
  t.teardown(() => {
    fs.link = link
    syncBuiltinESMExports()
  })
  fs.link = async () => { throw Object.assign(new Error('EPERM: operation not permitted'), { code: 'EPERM' }) }
  syncBuiltinESMExports()

  const dir = t.testdir()
  const path = join(dir, 'secret')
  t.equal(await refusal(path), `Cannot keep a secret in ${path}: EPERM: operation not permitted`)
  t.strictSame(await fs.readdir(dir), [])
})

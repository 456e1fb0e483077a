import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'

import { jwtSecretOf, readOrCreateSecret } from '#lib/config/secret-file.js'
import { StartupError } from '#lib/config/startup-error.js'
import t from '../../suite.ts'

/** The message of the StartupError. */
async function refusal (path: string, read = readOrCreateSecret) {
  return read(path).catch(error => error instanceof StartupError ? error.message : error)
}

t.test('The first call creates a secret that only its owner can read', async t => {
  const dir = join(t.testdir(), 'made', 'too')
  const path = join(dir, 'secret')
  const secret = await readOrCreateSecret(path)
  t.match(secret, /^[A-Za-z0-9_-]{64}$/)
  t.equal((await fs.stat(path)).mode & 0o777, 0o600)
  t.strictSame(await fs.readdir(dir), ['secret'])
  t.equal(await readOrCreateSecret(path), secret, 'the next call reads it')
  t.not(await readOrCreateSecret(join(dir, 'other')), secret, 'another file has another secret')
})

t.test('An existing secret is kept', async t => {
  const path = join(t.testdir({ secret: 'of old' }), 'secret')
  t.equal(await readOrCreateSecret(path), 'of old')
})

t.test('A secret is text in UTF-8', async t => {
  const dir = t.testdir({ binary: Buffer.from('s\xe9cret', 'latin1'), marked: '\ufeffsecret' })
  const binary = join(dir, 'binary')
  t.equal(await refusal(binary), `Cannot read or create the secret in ${binary}: it is not UTF-8`)
  t.equal(await readOrCreateSecret(join(dir, 'marked')), 'secret', 'a byte order mark is no part of it')
})

t.test('Concurrent calls agree on one secret', async t => {
  const dir = t.testdir()
  const path = join(dir, 'secret')
  const secrets = new Set(await Promise.all(Array.from({ length: 20 }, () => readOrCreateSecret(path))))
  t.strictSame([...secrets], [await fs.readFile(path, 'utf8')])
  t.strictSame(await fs.readdir(dir), ['secret'])
})

t.test('A file that cannot be read or created is a StartupError', async t => {
  const dir = t.testdir({ file: '' })
  const problem = 'EISDIR: illegal operation on a directory, read'
  t.equal(await refusal(dir), `Cannot read or create the secret in ${dir}: ${problem}`)
  const path = join(dir, 'file', 'secret')
  t.equal(await refusal(path),
    `Cannot read or create the secret in ${path}: EEXIST: file already exists, mkdir '${join(dir, 'file')}'`)
})

t.test('A link is not followed', async t => {
  const dir = t.testdir({ target: 'of somebody else' })
  for (const target of ['target', 'nowhere']) {
    await fs.symlink(join(dir, target), join(dir, `to-${target}`))
    t.match(await refusal(join(dir, `to-${target}`)), /^Cannot read or create the secret in .*: ELOOP/)
  }
})

t.test('A file that cannot be moved into place is a StartupError, and leaves no temporary file', async t => {
  const link = fs.link
  t.teardown(() => {
    fs.link = link
    syncBuiltinESMExports()
  })
  fs.link = async () => { throw Object.assign(new Error('EPERM: operation not permitted'), { code: 'EPERM' }) }
  syncBuiltinESMExports()

  const dir = t.testdir()
  const path = join(dir, 'secret')
  t.equal(await refusal(path), `Cannot read or create the secret in ${path}: EPERM: operation not permitted`)
  t.strictSame(await fs.readdir(dir), [])
})

/** The JWT secret in the folder of this file. */
const jwtSecretAt = (path: string) => jwtSecretOf({ DATA_DIR: dirname(path) })

t.test('The JWT secret is created for its owner only, and read again', async t => {
  const path = join(t.testdir(), 'jwt-secret')
  const secret = await jwtSecretAt(path)
  t.match(secret, /^[A-Za-z0-9_-]{64}$/)
  t.equal(await jwtSecretAt(path), secret)
  await fs.chmod(path, 0o400)
  t.equal(await jwtSecretAt(path), secret, 'it may be read-only')
})

t.test('The JWT secret must be as long as JWT_SECRET', async t => {
  const path = join(t.testdir(), 'jwt-secret')
  for (const secret of ['', 'x'.repeat(31), ` ${'x'.repeat(31)}\n`]) {
    await fs.writeFile(path, secret, { mode: 0o600 })
    t.equal(await refusal(path, jwtSecretAt),
      `${path} must have at least 32 characters. Delete it to create a new secret, or set JWT_SECRET.`)
  }
  await fs.writeFile(path, 'x'.repeat(32))
  t.equal(await jwtSecretAt(path), 'x'.repeat(32))
})

t.test('The JWT secret must be readable by its owner only', async t => {
  const path = join(t.testdir(), 'jwt-secret')
  await jwtSecretAt(path)
  for (const mode of [0o640, 0o604, 0o644, 0o666, 0o610]) {
    await fs.chmod(path, mode)
    t.equal(await refusal(path, jwtSecretAt),
      `Other users can read ${path}. Run chmod 600 ${path}, or set JWT_SECRET.`, mode.toString(8))
  }
})

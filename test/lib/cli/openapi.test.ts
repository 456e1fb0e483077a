import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import openapiCommand from '#lib/cli/openapi.js'
import { call } from '../../process.ts'
import { RUN_DIR } from '../../run.ts'
import t from '../../suite.ts'

const DATA_DIR = t.testdir()
/** A database that does not exist. */
const DATABASE_URL = 'postgres://127.0.0.1:1/none'
const openapi = (...args: string[]) => call(openapiCommand, { DATA_DIR, DATABASE_URL }, { args })

const succeeded = (stdout: string) => ({ code: 0, signal: null, stdout, stderr: '' })
const failed = (stderr: string) => ({ code: 1, signal: null, stdout: '', stderr })

t.test('The committed description is up to date', async t => {
  t.strictSame(await openapi('--check'), succeeded('openapi.json is up to date\n'))
  t.strictSame(await readdir(DATA_DIR), [], 'without a database')
})

t.test('It writes and compares the given file', async t => {
  const file = join(await mkdtemp(resolve(RUN_DIR, 'openapi-')), 'api.json')
  const name = file.slice(resolve('.').length + 1)
  const outOfDate = failed(`${name} is out of date: run "npm run openapi"\n`)
  t.strictSame(await openapi(file, '--check'), outOfDate, 'no file')
  t.strictSame(await openapi(file), succeeded(`Wrote ${name}\n`))
  t.strictSame(await openapi(file, '--check'), succeeded(`${name} is up to date\n`))
  const written = await readFile(file, 'utf8')
  t.equal(written, await readFile('openapi.json', 'utf8'))
  await writeFile(file, written.replace('"summary": "', '"summary": "Not '))
  t.strictSame(await openapi(file, '--check'), outOfDate, 'a different text')
})

// Runs the commands of the documents in a shell, in their order, and compiles their samples.
import { execFile } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

import sharp from 'sharp'
import t from 'tap'
import ts from 'typescript'

import { build, insert, MAIL, person } from './helper.ts'
import { createProgram } from './typescript.ts'

const exec = promisify(execFile)

/** The code blocks of a document in this language. */
async function blocksOf (path: string, language: string) {
  const text = await readFile(path, 'utf8')
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map(([, block = '']) => block)
}

/** Commands of the service run without npm, which needs the folder of the project. curl fails with an error of HTTP. */
const SHELL = `set -eu
npm () {
  shift
  if [ "$1" = --silent ]; then shift; fi
  command=$1
  shift
  if [ "\${1-}" = -- ]; then shift; fi
  node '${resolve('dist/lib/cli.js')}' "$command" "$@" < password
}
curl () { command curl --fail-with-body --silent --show-error "$@"; }
`

/** Documents whose commands run against a service. Blocks with other commands are for the machine of an operator. */
const DOCUMENTS = [
  'docs/start/app.md', 'docs/api/sign-in.md', 'docs/api/pictures.md', 'docs/run/accounts.md', 'docs/run/email.md',
  'docs/run/privacy.md',
]

for (const path of DOCUMENTS) {
  t.test(`The commands of ${path} work`, async t => {
    const app = await build(t, MAIL)
    await app.listen({ port: 0 })
    const { port } = app.server.address() as AddressInfo
    const folder = t.testdir({ password: 'correct horse battery\n' })
    // What the pages take for granted
    const { token } = await person(app, 'STUDENT', { email: 'grace@example.org' })
    if (path.startsWith('docs/run/') && path !== 'docs/run/accounts.md') {
      await person(app, 'STUDENT', { email: 'ada@example.org' })
    }
    if (path === 'docs/run/accounts.md') await insert(app, 'clubs', { name: 'Chess Club' })
    for (const csv of await blocksOf(path, 'csv')) await writeFile(join(folder, 'members.csv'), csv)
    const picture = sharp({ create: { width: 4, height: 3, channels: 3, background: 'red' } })
    await picture.jpeg().toFile(join(folder, 'photo.jpg'))

    const isCommand = /^(curl|npm run (seed|user|email|database)) /m
    const blocks = (await blocksOf(path, 'sh')).filter(block => isCommand.test(block))
    t.ok(blocks.length > 0)
    const script = blocks.join('')
      .replaceAll('localhost:3000', `localhost:${port}`)
      // There is no terminal to ask for a password.
      .replaceAll(/(user -- create[^#\n]*)/g, '$1 --password-stdin ')
      // No email has failed.
      .replaceAll(/^.*retry ID.*$/gm, '')
    const { DATABASE_URL } = app.config
    const env = { PATH: process.env.PATH, TOKEN: token, DATABASE_URL, ...MAIL }
    await t.resolves(exec('bash', ['-c', SHELL + script], { cwd: folder, env }))
  })
}

const documents = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'client/README.md', ...await documentsIn('docs')]

async function documentsIn (folder: string) {
  const names = await readdir(folder, { recursive: true })
  return names.filter(name => name.endsWith('.md')).map(name => join(folder, name))
}

t.test('Commands and JSON are well-formed', async t => {
  for (const path of documents) {
    for (const block of await blocksOf(path, 'sh')) await t.resolves(exec('bash', ['-n', '-c', block]), path)
    for (const block of await blocksOf(path, 'json')) t.doesNotThrow(() => JSON.parse(block), path)
  }
})

t.test('Samples of TypeScript compile', async t => {
  const sources = new Map<string, string>()
  for (const path of documents) {
    const text = (await blocksOf(path, 'ts')).join('')
    if (/'community-platform-client'/.test(text)) {
      const source = text.replaceAll('community-platform-client', './index.js')
      sources.set(resolve(`client/sample-${sources.size}.ts`), source)
    } else {
      // A part of a file
      const { diagnostics } = ts.transpileModule(text, { reportDiagnostics: true })
      t.strictSame(diagnostics, [], path)
    }
  }
  t.equal(sources.size, 2)
  const program = createProgram(sources)
  const messages = ts.getPreEmitDiagnostics(program).map(({ messageText }) => messageText)
  t.strictSame(messages, [])
})

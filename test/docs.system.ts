// Runs the commands of the documents in a shell, in their order, and checks their samples.
import { execFile } from 'node:child_process'
import { symlink, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

import sharp from 'sharp'
import t, { type Test } from 'tap'
import ts from 'typescript'
import { parse } from 'yaml'

import { drawSeats } from '#lib/agenda/draws.js'
import { loadConfig } from '#lib/config/config.js'
import { blocksOf, commandsOf, DOCUMENTS, isSettings, RUN_BY, SHELL } from './documents.ts'
import { build, insert, MAIL, person } from './helper.ts'
import { freePort, isInstalled } from './process.ts'
import { createProgram } from './typescript.ts'

const exec = promisify(execFile)

const blocks = (await Promise.all(DOCUMENTS.map(blocksOf))).flat()
const inLanguage = (language: string) => blocks.filter(block => block.language === language)

/**
 * The programs run without what tap adds to every process for coverage, which doubles their time. curl fails with an
 * error of HTTP. A server that does not end by itself must run for a second.
 */
const PROGRAMS = `unset NODE_OPTIONS
curl () { command curl --fail-with-body --silent --show-error "$@"; }
python3 () { timeout 1 python3 "$@" || [ $? = 124 ]; }
`

for (const key of Object.keys(RUN_BY).filter(key => RUN_BY[key] === 'test/docs.system.ts')) {
  const [path = '', heading] = key.split('#')
  if (path === 'docs/api/client.md') continue
  t.test(`The commands of ${key} work`, async t => {
    const app = await build(t, MAIL)
    await app.listen({ port: 0 })
    const { port } = app.server.address() as AddressInfo
    const folder = t.testdir({ password: 'correct horse battery\n' })
    // What the pages take for granted. The first page fills an empty database.
    const token = path === 'docs/start/app.md'
      ? ''
      : (await person(app, 'STUDENT', { email: 'grace@example.org' })).token
    if (path.startsWith('docs/run/') && path !== 'docs/run/accounts.md') {
      await person(app, 'STUDENT', { email: 'ada@example.org' })
    }
    if (path === 'docs/run/accounts.md') await insert(app, 'clubs', { name: 'Chess Club' })
    for (const { text } of inLanguage('csv').filter(({ document }) => document === path)) {
      await writeFile(join(folder, 'members.csv'), text)
    }
    const picture = sharp({ create: { width: 4, height: 3, channels: 3, background: 'red' } })
    await picture.jpeg().toFile(join(folder, 'photo.jpg'))

    const commands = await commandsOf(path, heading)
    t.ok(commands.length > 0)
    const script = commands.join('')
      .replaceAll(/(?<=localhost|127\.0\.0\.1):3000/g, `:${port}`)
      .replaceAll('5173', String(await freePort()))
      // There is no terminal to ask for a password.
      .replaceAll(/(user -- create[^#\n]*)/g, '$1 --password-stdin < password ')
      // No email has failed.
      .replaceAll(/^.*(retry|dismiss) ID.*$/gm, '')
    const { DATABASE_URL } = app.config
    const env = { PATH: process.env.PATH, TOKEN: token, DATABASE_URL, ...MAIL }
    await t.resolves(exec('bash', ['-c', SHELL + PROGRAMS + script], { cwd: folder, env }))
  })
}

t.test('The commands of docs/api/client.md install the client', async t => {
  const folder = t.testdir({ app: { 'package.json': '{ "type": "module" }' } })
  await symlink(resolve('.'), join(folder, 'community-platform'))
  const cwd = join(folder, 'app')
  const env = { ...process.env, npm_config_prefer_offline: 'true' }
  await exec('bash', ['-ec', (await commandsOf('docs/api/client.md')).join('')], { cwd, env })
  const script = "import { createClient } from 'community-platform-client'; console.log(typeof createClient)"
  const { stdout } = await exec('node', ['--input-type=module', '--eval', script], { cwd })
  t.equal(stdout, 'function\n')
})

t.test('Commands, JSON and YAML are well-formed', async t => {
  for (const { document, text } of inLanguage('sh')) await t.resolves(exec('bash', ['-n', '-c', text]), document)
  for (const { document, text } of inLanguage('json')) t.doesNotThrow(() => JSON.parse(text), document)
  for (const { document, text } of inLanguage('yaml')) t.doesNotThrow(() => parse(text), document)
})

t.test('The service accepts the settings', async t => {
  const settings = blocks.filter(isSettings)
  t.ok(settings.length > 5)
  const required = {
    DATABASE_URL: 'postgres://db.example.org/community',
    JWT_SECRET: 'a secret of the tests, long enough',
    MAIL_FROM: 'community@example.org',
  }
  for (const { document, text } of settings) {
    for (const line of text.trim().split('\n')) {
      const { stdout } = await exec('bash', ['-c', `${line}\n printf %s "\${${line.split('=')[0]}}"`])
      const name = line.split('=')[0]!
      // OpenTelemetry and the C library read their own variables.
      if (/^(OTEL_TRACES_|GLIBC_)/.test(name)) continue
      const value = name === 'JWT_SECRET'
        ? required.JWT_SECRET
        : stdout.replace('…', 'x').replace('/etc/ca.pem', resolve('package.json'))
      t.ok(loadConfig({ ...required, [name]: value }, '/dev/null'), `${document}: ${line}`)
    }
  }
})

t.test('Statements of SQL run', async t => {
  const { sql } = await build(t)
  await insert({ sql }, 'mentors', { club_id: await insert({ sql }, 'clubs') })
  for (const { document, text } of inLanguage('sql')) {
    await t.rejects(sql.begin(async sql => {
      const { count } = await sql`SELECT FROM pg_roles WHERE rolname = 'community'`
      if (count === 0) await sql`CREATE ROLE community`
      // The example fills a column that a migration has added.
      if (text.startsWith('UPDATE mentors')) await sql`ALTER TABLE mentors ADD COLUMN full_name text`
      await sql.unsafe(text)
      throw new Error('Everything worked')
    }), { message: 'Everything worked' }, document)
  }
})

// docs/api/agenda.md promises that everybody can check a draw, in any language.
t.test('The script in Python checks draws from their public response only', async t => {
  if (!await isInstalled('python3')) return t.pass('skipped: it needs python3', { skip: true })
  const [script, ...others] = inLanguage('python')
  t.strictSame(others, [])
  const app = await build(t)
  await app.listen({ port: 0 })
  const { port } = app.server.address() as AddressInfo
  const people = await Promise.all(Array.from({ length: 9 }, () => person(app)))
  const admin = await person(app, 'ADMIN')
  const [club, date] = [await insert(app, 'clubs'), new Date('2999-01-01')]
  /** Runs the script. Returns the lines of its output or error. */
  const check = async (id: string, commitment: string) => {
    const url = `http://127.0.0.1:${port}/agenda/${id}/draw`
    const env = { ...process.env, NO_PROXY: '*' }
    const { stdout } = await exec('python3', ['-c', script!.text, url, commitment], { env })
      .catch(({ stderr }: { stderr: string }) => ({ stdout: stderr }))
    return stdout.trim().split('\n')
  }
  for (let n = 0; n < 50; n++) {
    const id = await insert(app, 'events', { date, club_id: club })
    await admin.inject('PUT', `/agenda/${id}`, { capacity: 1 + n % 10, drawAt: '2998-01-01T00:00:00Z' })
    for (const who of people) await who.inject('POST', `/events/${id}/register`)
    const draw = async () => (await app.inject(`/agenda/${id}/draw`)).json().draw
    const { commitment } = await draw()
    if (n === 0) t.strictSame(await check(id, commitment), ['The seats have not been drawn yet.'])
    await app.sql`UPDATE event_details SET draw_at = now() WHERE event_id = ${id}`
    await app.sql.begin(sql => drawSeats(sql, id, async () => {}))
    const { order } = await draw()
    const { seats } = (await admin.inject('GET', `/agenda/${id}/seats`)).json()
    const expected = seats.map(({ registrationId, state }: Record<string, string>, place: number) =>
      `${place + 1} ${registrationId} ${state === 'seated' ? 'has a seat' : 'waits'}`)
    t.strictSame(await check(id, commitment), expected)
    if (n > 0) continue
    t.strictSame(await check(id, '0'.repeat(64)), ['The commitment is not the one that you noted.'])
    await app.sql`
      UPDATE event_answers SET since = drawn_at - interval '1 microsecond' FROM event_details
      WHERE registration_id = ${order[0]} AND event_details.event_id = ${id}
    `
    t.strictSame(await check(id, commitment), ['The order is not the order of the lots.'])
    await app.sql`UPDATE event_details SET draw_seed = repeat('0', 64) WHERE event_id = ${id}`
    t.strictSame(await check(id, commitment), ['The commitment is not the one that you noted.'])
  }
})

t.test('HAProxy accepts its settings', async t => {
  if (!await isInstalled('haproxy')) return t.pass('skipped: it needs haproxy', { skip: true })
  const folder = t.testdir()
  const samples = inLanguage('haproxy')
  t.equal(samples.length, 1)
  for (const { text } of samples) {
    const file = join(folder, 'haproxy.cfg')
    const section = 'defaults\n  mode http\n  timeout client 1s\n  timeout server 1s\n  timeout connect 1s\nlisten x\n'
    await writeFile(file, `${section}  bind 127.0.0.1:${await freePort()}\n${text}`)
    await t.resolves(exec('haproxy', ['-c', '-f', file]))
  }
})

t.test('Samples of TypeScript and JavaScript compile', async t => {
  const sources = new Map<string, string>()
  for (const path of DOCUMENTS) {
    const samples = inLanguage('ts').filter(({ document }) => document === path)
    const text = samples.map(({ text }) => text).join('')
    if (/'community-platform-client'/.test(text)) {
      const source = text.replaceAll('community-platform-client', './index.js')
      sources.set(resolve(`client/sample-${sources.size}.ts`), source)
    } else {
      // A part of a file
      assertSyntax(t, path, text)
    }
  }
  t.equal(sources.size, 2)
  const program = createProgram(sources)
  const messages = ts.getPreEmitDiagnostics(program).map(({ messageText }) => messageText)
  t.strictSame(messages, [])

  for (const { document, text } of inLanguage('js')) assertSyntax(t, document, text)
  for (const { document, text } of inLanguage('html')) {
    for (const [, script = ''] of text.matchAll(/<script[^>]*>(.*?)<\/script>/gs)) assertSyntax(t, document, script)
  }
})

function assertSyntax (t: Test, path: string, text: string) {
  const { diagnostics } = ts.transpileModule(text, { reportDiagnostics: true })
  t.strictSame(diagnostics, [], path)
}

// Sends random requests to the service and checks every response; see `npm run fuzz -- --help`.
import { randomInt } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'

import fc from 'fast-check'
import postgres from 'postgres'

import { buildApp } from '#lib/app.js'
import { driverOptions } from '#lib/database/pools.js'
import { startEmbeddedPostgres } from '#lib/database/embedded-postgres.js'
import { migrate } from '#lib/database/migrations.js'
import { createLogger } from '#lib/http/logger.js'
import { StartupError } from '#lib/config/startup-error.js'
import { runMain } from '#lib/startup.js'
import { testConfig } from '../helper.ts'
import { readOptions } from '../options.ts'
import { CLIENT, startFakeProvider } from '../provider.ts'
import { asSuperuser, withDatabase } from '../run.ts'
import { Scope } from '../scope.ts'
import { createFixture } from './fixture.ts'
import { Hints } from './hints.ts'
import { readOperations } from './operations.ts'
import { checkResponse } from './properties.ts'
import { type Message, requestsFor } from './requests.ts'
import { send } from './send.ts'

const USAGE = `Usage: npm run fuzz [-- OPTION …]

  --runs N         how many requests every operation gets (2000)
  --seed S         what the requests are made from: the same seed makes the same requests (a new one each time)
  --only PATTERN   fuzz only the operations whose name, such as "POST /events", matches this regular expression
  --path PATH      repeat one request of --seed: the path is printed with a failure; --only must name its operation`

/** The folder of the embedded server; removed at the end. */
const DIRECTORY = '.data/fuzz'

/** These succeed with the link of an email, which few random requests have. */
const NEED_SECRETS = ['POST /account/password/reset', 'POST /account/email/verify', 'POST /account/unsubscribe/:token']

await runMain(async () => {
  const options = readOptions({
    options: {
      runs: { type: 'string', default: '2000' },
      seed: { type: 'string', default: String(randomInt(1, 2 ** 31)) },
      only: { type: 'string', default: '' },
      path: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  }, ({ values }) => ({
    ...values,
    runs: toNumber(values.runs, '--runs'),
    seed: toNumber(values.seed, '--seed'),
    only: new RegExp(values.only),
  }))
  if (options.help) return console.log(USAGE)
  const scope = new Scope()
  process.once('SIGINT', async () => {
    await scope.end()
    process.exit(130)
  })
  try {
    if (!await fuzz(scope, options)) process.exitCode = 1
  } finally {
    await scope.end()
  }
})

function toNumber (text: string, name: string) {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new Error(`${name} must be a whole number from 1`)
  return Number(text)
}

interface Options { runs: number, seed: number, only: RegExp, path?: string }

/** Fuzzes the chosen operations. Returns whether all checks passed. */
async function fuzz (scope: Scope, { runs, seed, only, path }: Options) {
  const DATABASE_URL = await makeDatabase(scope)
  const provider = await startFakeProvider(scope)
  let line = ''
  const app = buildApp(testConfig({
    DATABASE_URL,
    ...CLIENT,
    IDP_ISSUER: provider.issuer,
    FRONTEND_URL: 'https://app.example.org',
    // Emails are written, and never sent.
    SMTP_URL: 'smtp://127.0.0.1:9',
    MAIL_FROM: 'community@example.org',
    // A low limit makes bodies that exceed it cheap. Rate limits would block the next attempts.
    MAX_BODY_BYTES: '65536',
    SIGN_IN_ATTEMPTS: '0',
  }), createLogger('error', { write (text) { line = text } }))
  const operations = readOperations(app)
  await app.listen({ host: '127.0.0.1', port: 0 })
  scope.teardown(() => app.close())
  const { port } = app.server.address() as AddressInfo

  const chosen = operations().filter(({ name }) => only.test(name))
  if (chosen.length === 0) throw new StartupError(`No operation matches ${only}`)
  if (path && chosen.length > 1) throw new StartupError(`--path needs an operation, but ${chosen.length} match ${only}`)
  const fixture = await createFixture(scope, DATABASE_URL)
  const lasting = { exp: Math.floor(Date.now() / 1000) + 24 * 3600 }
  const hints = new Hints(fixture, [
    await provider.idToken(lasting), await provider.idToken({ ...lasting, email: fixture.emails[0] }),
  ])
  // An error that is thrown outside of a handler ends the process.
  let current: Message | undefined
  process.once('uncaughtExceptionMonitor', () => console.error('! The service has crashed on', shown(current)))

  const start = performance.now()
  let failures = 0
  const fail = (what: string) => {
    failures++
    console.error(`! ${what}`)
  }
  for (const operation of chosen) {
    const statuses = new Map<number, number>()
    const check = async (message: Message) => {
      current = message
      line = ''
      const response = await send(port, message)
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
      try {
        await checkResponse(response, message, operation, operations(), fixture)
      } catch (error) {
        const { status, body } = response
        throw new Error([(error as Error).message, `${status} ${body.slice(0, 500)}`, line.slice(0, 500)].join('\n'))
      }
      // The request may have written. Rate limits would refuse the next requests.
      const { status } = response
      if (status === 429 || (status < 400 && (message.method !== 'GET' || status === 302))) await fixture.restore()
    }
    const requests = requestsFor({ operation, operations: operations(), fixture, hints, issueToken: app.issueToken })
    const { failed, counterexample, counterexamplePath, errorInstance } = await fc.check(
      fc.asyncProperty(requests, check), { numRuns: runs, seed, path })
    const counts = [...statuses].sort(([one], [other]) => one - other).map(([status, count]) => `${count} × ${status}`)
    console.log(`${operation.name.padEnd(48)}${counts.join(', ')}`)
    if (failed) {
      fail(`${operation.name}: ${(errorInstance as Error).message}\n${shown(counterexample![0])}\n` +
        `npm run fuzz -- --seed ${seed} --only '^${operation.name}$' --path ${counterexamplePath}`)
    } else if (!path && !NEED_SECRETS.includes(operation.name)) {
      for (const status of Object.keys(operation.responses).map(Number)) {
        if (status < 400 && !statuses.has(status)) fail(`${operation.name} never returned ${status}`)
      }
    }
  }
  const seconds = Math.round((performance.now() - start) / 1000)
  console.log(`\n${chosen.length} operations in ${seconds} s with --seed ${seed}`)
  return failures === 0
}

/** A request in a form that can be read. */
function shown (message?: Message) {
  if (!message) return ''
  const { method, target, headers, payload } = message
  const lines = [`${method} ${target}`, ...headers.map(header => header.join(': ')), '', payload ?? '']
  return lines.join('\n').slice(0, 4000)
}

/** Creates a migrated database, on the server at DATABASE_URL or an embedded one. Returns its URL. */
async function makeDatabase (scope: Scope) {
  await mkdir(DIRECTORY, { recursive: true })
  scope.teardown(() => rm(DIRECTORY, { recursive: true }))
  const server = process.env.DATABASE_URL
    ? { url: process.env.DATABASE_URL, release () {} }
    : await startEmbeddedPostgres(DIRECTORY, { info () {}, warn: console.error })
  scope.teardown(() => server.release())
  const name = `fuzz_${process.pid}`
  const administration = process.env.DATABASE_URL ? server.url : asSuperuser(server.url)
  const sql = postgres({ ...driverOptions(administration), max: 1, fetch_types: false, onnotice () {} })
  scope.teardown(async () => {
    await sql`DROP DATABASE IF EXISTS ${sql(name)} WITH (FORCE)`
    await sql.end()
  })
  await sql`CREATE DATABASE ${sql(name)}`
  const url = withDatabase(administration, name)
  await migrate(url)
  return url
}

// Sends random requests to a running service and checks every response; see `npm run fuzz -- --help`.
import fc from 'fast-check'

import { loadConfig } from '#lib/config.js'
import { runMain, StartupError } from '#lib/errors.js'
import { freePort } from '../process.ts'
import { CLIENT, startFakeProvider } from '../provider.ts'
import { Scope } from '../scope.ts'
import { makeDatabase, Service } from './environment.ts'
import { Hints } from './hints.ts'
import { readOperations } from './operations.ts'
import { type Options, readFuzzOptions, USAGE } from './options.ts'
import { commandOf, showHeader, showRow, Tally } from './report.ts'
import { requestsFor } from './requests.ts'
import { Target } from './target.ts'
import { createFixture } from './fixture.ts'

/** These succeed with a link of an email, or the password of a user: random requests have neither. */
const NEED_SECRETS = [
  'POST /account/password/reset', 'POST /account/email/verify', 'POST /account/unsubscribe/:token', 'PUT /me/password',
]

await runMain(async () => {
  const options = readFuzzOptions()
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

/** Fuzzes the chosen operations. Returns whether all checks passed. */
async function fuzz (scope: Scope, { runs, seed, only, path }: Options) {
  const provider = await startFakeProvider(scope)
  const environment = {
    NODE_ENV: 'test',
    NODE_OPTIONS: '--enable-source-maps',
    LOG_LEVEL: 'error',
    PORT: String(await freePort()),
    DATABASE_URL: await makeDatabase(scope),
    JWT_SECRET: 'a secret of the fuzzing, long enough',
    ...CLIENT,
    IDP_ISSUER: provider.issuer,
    FRONTEND_URL: 'https://app.example.org',
    // Emails are written, and never sent.
    SMTP_URL: 'smtp://127.0.0.1:9',
    MAIL_FROM: 'community@example.org',
    // A low limit makes bodies that exceed it cheap. Rate limits would block the next attempts.
    MAX_BODY_BYTES: '65536',
    SIGN_IN_ATTEMPTS: '0',
  }
  const { operations, issueToken } = await readOperations(loadConfig(environment, '/dev/null'))
  const chosen = operations.filter(({ name }) => only.test(name))
  if (chosen.length === 0) throw new StartupError(`No operation matches ${only}`)
  if (path && chosen.length > 1) throw new StartupError(`--path needs an operation, but ${chosen.length} match ${only}`)

  const fixture = await createFixture(scope, environment.DATABASE_URL)
  const lasting = { exp: Math.floor(Date.now() / 1000) + 24 * 3600 }
  const hints = new Hints(fixture, [
    await provider.idToken(lasting), await provider.idToken({ ...lasting, email: fixture.emails[0] }),
  ])
  const service = await Service.start(scope, environment)
  const start = performance.now()
  let failures = 0
  const fail = (what: string) => {
    failures++
    console.error(`! ${what}`)
  }
  showHeader()
  for (const operation of chosen) {
    const tally = new Tally()
    const target = new Target({ service, operation, operations, fixture, tally })
    const { failed, counterexample, counterexamplePath, errorInstance } = await fc.check(
      fc.asyncProperty(requestsFor({ operation, operations, fixture, hints, issueToken }), each => target.check(each)),
      { numRuns: runs, seed, path })
    target.close()
    showRow(operation.name, tally)
    if (failed) {
      fail(`${operation.name}: ${(errorInstance as Error).message}\n` +
        `${commandOf(counterexample![0], service.port)}\n` +
        `npm run fuzz -- --seed ${seed} --only '^${operation.name}$' --path ${counterexamplePath}`)
    } else if (!path) {
      const missed = Object.keys(operation.responses)
        .filter(status => Number(status) < 400 && !tally.has(Number(status)))
      if (NEED_SECRETS.includes(operation.name)) continue
      for (const status of missed) fail(`${operation.name} never returned ${status}`)
    }
  }
  await service.prepare()
  const seconds = Math.round((performance.now() - start) / 1000)
  console.log(`\n${chosen.length} operations in ${seconds} s with --seed ${seed}`)
  return failures === 0
}
